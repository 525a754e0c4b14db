package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/terminal"
)

func newRunsRm() *cobra.Command {
	var state string
	var on clusterFlags
	c := &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove runs, which cannot be resumed or looked into then",
		Long: `Remove runs, which cannot be resumed or looked into then.

With --on SERVERS, what servers of NATS have of a run is removed: workers leave it, and
what they answered and its caller has not taken is lost. A run whose caller is at work is
not removed: end that first. What a caller keeps in its --state stays.`,
		SuggestFor: []string{"remove", "delete"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the runs to remove; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			remove := runs.Of(state).Remove
			if slices.ContainsFunc(ids, on.has) {
				conn, err := on.connect(c.Context(), saying(c))
				if err != nil {
					return err
				}
				defer conn.Close()
				remove = func(id string) error { return removeAt(c.Context(), conn, id) }
			}
			var removed []string
			var failed []error
			for _, id := range ids {
				if err := remove(id); err != nil {
					failed = append(failed, err)
				} else {
					removed = append(removed, id)
				}
			}
			if len(removed) > 0 {
				fmt.Fprintf(c.OutOrStdout(), "removed %s\n", strings.Join(removed, ", "))
			}
			return errors.Join(failed...)
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	on.register(c, "remove runs that workers answer")
	return c
}

// maxNamed is how many runs a line names.
const maxNamed = 5

// removedRuns says which finished runs were removed as another began.
func removedRuns(all []runs.Removed) string {
	var names []string
	var tokens uint64
	paid, failed := 0, 0
	for _, r := range all {
		name := r.ID
		if r.Tokens > 0 {
			paid++
			name = fmt.Sprintf("%s (%d tokens)", r.ID, r.Tokens)
		}
		names, tokens, failed = append(names, name), tokens+r.Tokens, failed+r.Failed
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("removed %s beyond those that are kept: %s", terminal.Plural(len(all), "finished run"), strings.Join(names, ", "))
	if paid > 0 {
		text += fmt.Sprintf("; models had been asked in %d of them, for %d tokens", paid, tokens)
	}
	if failed > 0 {
		text += fmt.Sprintf("; %s had failed in them", terminal.Plural(failed, "item"))
	}
	return text
}
