package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			fmt.Fprintf(c.OutOrStdout(), "racflow %s %s/%s %s\n", engine.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
		},
	}
}
