package cli

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/model"
	"github.com/racflow/racflow/engine/terminal"
)

func newModelList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the encoders and rerankers that can be pulled by name, and those that are here",
		Long: `List the encoders (embed) and rerankers (rerank) that can be pulled by name, and all that
are on this machine: parameters, dimensions of the vectors, licence and size, here or
of the published weights. Other models of the same architectures can be pulled by
OWNER/MODEL, address or folder.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := model.List()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), map[string]any{"models": all})
			}
			return writeModelList(c.OutOrStdout(), all)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

func writeModelList(w io.Writer, all []model.Entry) error {
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw, "NAME\tMODEL\tKIND\tPARAMETERS\tDIMENSIONS\tLICENSE\tSIZE\tHERE")
	for _, e := range all {
		dimensions, size, here := "-", "-", "no: racflow model pull "+e.Name
		if e.Dimensions > 0 {
			dimensions = fmt.Sprint(e.Dimensions)
		}
		if e.Bytes > 0 {
			size = terminal.Bytes(e.Bytes)
		}
		if e.Dir != "" {
			here = e.Dir
		}
		if e.Error != "" {
			here = terminal.Sanitize(e.Error)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, terminal.Sanitize(e.Title), cmp.Or(string(e.Kind), "-"),
			millions(e.Parameters), dimensions, cmp.Or(e.License, "-"), size, here)
	}
	return tw.Flush()
}

// millions shows a number of parameters.
func millions(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}
