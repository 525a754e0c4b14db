package main

import (
	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/report"
)

func newGraph() *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw the stages of a file as a Mermaid flowchart",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			catalog, err := flags.catalog(c.Context())
			if err != nil {
				return err
			}
			file, err := flags.load(args[0], "", catalog)
			if err != nil {
				return err
			}
			return report.Graph(c.OutOrStdout(), file)
		},
	}
	flags.register(c)
	return c
}
