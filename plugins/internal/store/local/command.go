package local

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/sdk"
)

// Command is racflow store, which manages the files of the store.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Manage the files of the embedded store",
		Long: `Manage the files of the embedded store. FOLDER is a collection or holds
some, at any depth; without it that is the state folder, .racflow.`,
	}
	c.AddCommand(statsCommand(), checkCommand(), compactCommand(), exportCommand())
	return c
}

// eachCollection calls do with every collection in and below the named folders. A failure does not stop the others. A
// collection that was never committed is skipped.
func eachCollection(c *cobra.Command, folders []string, do func(Location) error) error {
	if len(folders) == 0 {
		folders = []string{".racflow"}
	}
	var all []Location
	for _, folder := range folders {
		found, err := find(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no folder %s: name the one of a store", folder)
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("%s holds no collection: name the folder of a store", folder)
		}
		all = append(all, found...)
	}
	var errs []error
	for _, at := range all {
		err := do(at)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(c.ErrOrStderr(), "%s is skipped: nothing was committed to it yet\n", at)
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errors.Join(errs...)
}

func statsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats [FOLDER ...]",
		Short: "Say what the collections are made of",
		Example: `  racflow store stats
  racflow store stats --json
  racflow store stats .racflow/local`,
		RunE: func(c *cobra.Command, folders []string) error {
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				return eachCollection(c, folders, func(at Location) error {
					s, err := stats(at)
					if err != nil {
						return err
					}
					return enc.Encode(struct {
						Collection string `json:"collection"`
						Statistics
					}{at.String(), s})
				})
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "COLLECTION\tENTRIES\tREMOVED\tLABELS\tDIMENSION\tANALYZER\tWORDS\tFILES\tSIZE")
			err := eachCollection(c, folders, func(at Location) error {
				s, err := stats(at)
				if err == nil {
					fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%s\n",
						at, s.Entries, s.Removed, s.Labels, s.Dimension, s.Analyzer, s.Words, s.Segments, size(s.Bytes))
				}
				return err
			})
			return errors.Join(tw.Flush(), err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each collection")
	return c
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FOLDER ...]",
		Short: "Read collections whole and report what is damaged",
		Example: `  racflow store check
  racflow store check .racflow`,
		RunE: func(c *cobra.Command, folders []string) error {
			return eachCollection(c, folders, func(at Location) error {
				err := check(c.Context(), at)
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s is whole\n", at)
				}
				return err
			})
		},
	}
}

func compactCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compact [FOLDER ...]",
		Short: "Rewrite collections without what was deleted and replaced",
		Long: `Rewrite collections without what was deleted and replaced. This happens by
itself where it pays; compacting leaves nothing of it, and one file of rows at most. It
needs room for a copy meanwhile.`,
		Example: `  racflow store compact
  racflow store compact .racflow`,
		RunE: func(c *cobra.Command, folders []string) error {
			return eachCollection(c, folders, func(at Location) error {
				done, err := Compact(c.Context(), at)
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s: %s, was %s\n", at, size(done.After), size(done.Before))
				}
				return err
			})
		},
	}
}

func exportCommand() *cobra.Command {
	var vectors bool
	c := &cobra.Command{
		Use:     "export FOLDER",
		Short:   "Print a collection as JSONL, which a source block reads",
		Example: `  racflow store export .racflow > entries.jsonl`,
		// Other programs read this output, so it is written unchanged.
		Annotations: map[string]string{"output": "data"},
		RunE: func(c *cobra.Command, folders []string) error {
			var all []Location
			if err := eachCollection(c, folders, func(at Location) error {
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
			err := export(c.Context(), all[0], func(e sdk.Entry) error { return enc.Encode(exported(e, vectors)) })
			return cmp.Or(err, out.Flush()) // report a full disk only once
		},
	}
	c.Flags().BoolVar(&vectors, "vectors", false, "with the vectors")
	return c
}

// exported converts an entry into a row of a JSONL source. Metadata keys stand beside the text, under their own
// names. A metadata key that is also the name of one of the entry's own fields gets a prefix.
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

// size formats a number of bytes in a suitable unit.
func size(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
