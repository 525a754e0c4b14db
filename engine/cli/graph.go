package cli

import (
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/report"
)

func newGraph() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw the stages of a file as a Mermaid flowchart",
		Args:  oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.files(c, func(a *app) error {
				file, err := a.Load(args[0])
				if err != nil {
					return err
				}
				return report.Graph(c.OutOrStdout(), file)
			})
		},
	}
	flags.register(c)
	return c
}
