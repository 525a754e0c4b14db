package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/lsp"
)

func newLSP() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors: diagnostics, completion, hover, definitions and formatting",
		Long: `Serve an editor over the Language Server Protocol, on standard input and output;
editors start this command themselves. examples/editor/README.md says how to set
them up.

Files are checked as validate does while they are edited. No program is started: a
plugin that is locked brought its description, and one that is being developed is
known when validate or another verb has asked it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.files(c, func(a *app) error {
				options, err := a.LoadOptions()
				if err != nil {
					return err
				}
				log, err := newLog()
				if err != nil {
					return err
				}
				return lsp.Serve(c.Context(), c.InOrStdin(), stdout{os.Stdout}, lsp.Options{Load: options, Version: engine.Version(), Log: log})
			})
		},
	}
	flags.register(c)
	return c
}

// stdout is standard output, which nobody closes.
type stdout struct{ io.Writer }

// Close implements io.Closer.
func (stdout) Close() error { return nil }
