package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/terminal"
)

func newRuns() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List and remove the runs that can be resumed",
		Long: `List and remove the runs that are kept in --state. Unfinished runs are kept until
they are resumed or removed, of the others the newest 20.`,
	}
	c.AddCommand(newRunsList(), newRunsRemove())
	return c
}

func newRunsList() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "list",
		Short: "Show what was run and how far it came",
		Long: `Show the runs that are kept, oldest first: with the items that are answered, which
resuming the run does not ask again, and its state. That is one of

  complete      there is nothing to resume
  unfinished    it was killed or interrupted, broke off, or has provisional answers
  failed items  its input is worked through, and some items failed
  at work       a process is working on it`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "RUN\tFILE\tPIPELINE\tINPUT\tANSWERED\tSTATE")
			for _, r := range journal.Of(state).List() {
				m := r.Manifest
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, shownPath(m.File), cmp.Or(m.Pipeline, "-"), shownPath(m.Input.Path), r.Answered, r.State)
			}
			return tw.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	return c
}

// shownPath is a path as a person may read it: relative where it is below the
// working directory.
func shownPath(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return terminal.Escape(cmp.Or(path, "-"))
}

func newRunsRemove() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove runs, which cannot be resumed then",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the runs to remove; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			var removed []string
			var failed []error
			for _, id := range ids {
				if err := journal.Of(state).Remove(id); err != nil {
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
	return c
}
