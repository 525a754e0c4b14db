package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/plugins/store/local"
	"github.com/racflow/racflow/sdk"
)

func newStoreExport() *cobra.Command {
	var vectors bool
	c := &cobra.Command{
		Use:   "export FOLDER",
		Short: "Print a collection as JSONL, which a source block reads",
		RunE: func(c *cobra.Command, folders []string) error {
			var all []local.Location
			if err := eachCollection(c, folders, func(at local.Location) error {
				all = append(all, at)
				return nil
			}); err != nil {
				return err
			}
			if len(all) > 1 {
				names := make([]string, len(all))
				for i, at := range all {
					names[i] = "  racflow store export " + at.String()
				}
				return fmt.Errorf("there are %d collections; export them one by one:\n%s", len(all), strings.Join(names, "\n"))
			}
			out := bufio.NewWriter(c.OutOrStdout())
			enc := json.NewEncoder(out)
			enc.SetEscapeHTML(false)
			err := local.Export(c.Context(), all[0], func(e sdk.Entry) error { return enc.Encode(exported(e, vectors)) })
			return cmp.Or(err, out.Flush()) // a full disk is reported once
		},
	}
	c.Flags().BoolVar(&vectors, "vectors", false, "with the vectors")
	return c
}

// exported lays an entry out as a row of a JSONL source: metadata stands beside
// the text, under its own names. A key that an entry has for itself gets a
// prefix.
func exported(e sdk.Entry, vectors bool) map[string]any {
	row := map[string]any{"id": e.ID, "text": e.Text}
	if e.Label != "" {
		row["label"] = e.Label
	}
	if e.Context != "" {
		row["context"] = e.Context
	}
	if vectors && len(e.Vector) > 0 {
		row["vector"] = e.Vector
	}
	for key, v := range e.Meta {
		switch key {
		case "id", "text", "label", "context", "vector":
			for taken := true; taken; _, taken = e.Meta[key] {
				key = "meta." + key
			}
		}
		row[key] = v
	}
	return row
}
