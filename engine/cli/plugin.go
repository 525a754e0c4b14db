package cli

import (
	"github.com/spf13/cobra"
)

func newPlugin() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Write, check, install and list plugins of third parties",
		Long: `Write, check, install and list plugins of third parties. To write one:

    racflow plugin new rerank mine
    cd mine
    racflow plugin verify .
    racflow plugin install . --dev
    racflow run pipeline.hcl

A pipeline file says which plugins it uses, where they come from and what they may
reach:

    required_plugins {
      mine = {
        source  = "ghcr.io/acme/racflow-plugin-mine"
        version = "~> 1.2"
        network = ["api.example.com:443"]   # without it none
      }
    }

Its stages are then used as use = "mine/STAGE". The file .racflow.lock.hcl beside
it, made to be committed, holds the hash of every program. What is started is what
was hashed: a program that was changed, that others could change, or that no lock
names is an error where the file uses it, and is not started, not even to describe
itself.

While a plugin is being developed it goes before what is locked: one that was
installed with --dev, or that lies in a folder of --plugins or RACFLOW_PLUGINS.
Every run, evaluation and plan says which these are.`,
	}
	c.AddCommand(
		newPluginNew(), newPluginVerify(), newPluginInstall(),
		newPluginInit(), newPluginList(), newPluginDescribe(), newPluginRemove(),
		newPluginPublish(),
	)
	return c
}
