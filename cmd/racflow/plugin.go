package main

import "github.com/spf13/cobra"

func newPlugin() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Write plugins, and install those of others",
		Long: `A plugin is a program of a third party that offers stages, which a pipeline file uses as
PLUGIN/STAGE. To write one:

  racflow plugin new rerank mine
  cd mine
  racflow plugin verify .
  racflow plugin install . --dev
  racflow run pipeline.hcl`,
	}
	c.AddCommand(newPluginNew(), newPluginInstall())
	return c
}
