package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/terminal"
)

func newVersion() *cobra.Command {
	var asJSON, modules bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Long: `Print the version, platform and Go release, and the revision that racflow was built from, where the
build knew it. A build from a working tree with changes says so: nobody can make it again.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := engine.BuildInfo()
			if asJSON {
				return writeJSON(c.OutOrStdout(), b)
			}
			return writeBuild(c.OutOrStdout(), b, modules)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object, with the modules")
	c.Flags().BoolVar(&modules, "modules", false, "list the modules that it was built with")
	return c
}

func writeBuild(w io.Writer, b engine.Build, modules bool) error {
	fmt.Fprintf(w, "racflow %s %s %s\n", b.Version, b.Platform, b.Go)
	if b.Revision != "" {
		changes := ""
		if b.Modified {
			changes = ", and changes that are not in it"
		}
		fmt.Fprintf(w, "revision %s of %s%s\n", b.Revision, b.Time, changes)
	}
	tw := terminal.NewTable(w)
	if modules {
		for _, m := range b.Modules {
			fmt.Fprintf(tw, "%s\t%s\n", m.Path, m.Version)
		}
	}
	return tw.Flush()
}
