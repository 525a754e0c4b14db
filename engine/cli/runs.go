package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/terminal"
)

func newRuns() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, look into, compare, resume and remove the runs that are kept",
		Long: `List, look into, compare, resume and remove the runs that are kept in --state.

Runs are numbered in the order in which they began: run-000001 is the first, and
no number is given twice. Where a run is to be named, newest is the last one.

A run that owes something is kept until it is resumed or removed: one that was
killed or interrupted, broke off, has items that were left or lack a voter, or
items that failed after a model had been asked about them. Of the others the
newest 20 are kept, or what the journal block of the pipeline says; a run that
removes old ones says which.`,
	}
	c.AddCommand(newRunsList(), newRunsShow(), newRunsDiff(), newRunsResume(), newRunsAttach(), newRunsRm())
	return c
}

// runOf finds a run that a person names, among those of a state folder.
func runOf(state, name string) (runs.Runs, string, error) {
	kept := runs.Of(state)
	if name != engine.Newest {
		return kept, name, nil
	}
	last, ok := kept.Last()
	if !ok {
		return kept, "", fmt.Errorf("no run is kept in %s", state)
	}
	return kept, last, nil
}

func newRunsList() *cobra.Command {
	var state string
	var on clusterFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show what was run and how far it came",
		Long: `Show the runs that are kept, oldest first: with the items that are answered, which
resuming the run does not ask again, of those that the input has, where the run came
to its end; the tokens and the cost of these answers; and its state. That is one of

  complete      there is nothing to resume
  unfinished    it was killed or interrupted, broke off, or has provisional answers
  failed items  its input is worked through, and some items failed
  at work       a process is working on it
  damaged       what says what was run cannot be read, or was changed

With --on SERVERS they are the runs at servers of NATS, with what workers do now.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if on.given() {
				return on.list(c, asJSON)
			}
			all := runs.Of(state).List()
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				for _, r := range all {
					if err := enc.Encode(listed(r)); err != nil {
						return err
					}
				}
				return nil
			}
			tw := terminal.NewTable(c.OutOrStdout())
			fmt.Fprintln(tw, "RUN\tSTARTED\tFILE\tPIPELINE\tINPUT\tANSWERED\tSTATE\tTOKENS\tCOST\tSIZE")
			for _, r := range all {
				m := r.Manifest
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.ID, startedAt(m.Started), shownPath(m.File), cmp.Or(m.Pipeline, "-"), shownPath(m.Input.Path),
					answeredOf(r), r.State, r.Tokens, costOf(r.Cost), size(r.Bytes))
			}
			return tw.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each run")
	on.register(c, "list the runs that workers answer")
	return c
}

// runLine is a run in JSON.
type runLine struct {
	Run      string     `json:"run"`
	Started  *time.Time `json:"started,omitempty"`
	File     string     `json:"file,omitempty"`
	Pipeline string     `json:"pipeline,omitempty"`
	Input    string     `json:"input,omitempty"`
	State    runs.State `json:"state"`
	Answered int        `json:"answered"`
	Items    *int       `json:"items,omitempty"` // of the input; absent: not known
	Tokens   uint64     `json:"tokens"`
	Cost     float64    `json:"cost"`
	Bytes    int64      `json:"bytes"`
}

func listed(r runs.Info) runLine {
	m := r.Manifest
	l := runLine{Run: r.ID, File: m.File, Pipeline: m.Pipeline, Input: m.Input.Path, State: r.State, Answered: r.Answered, Tokens: r.Tokens, Cost: r.Cost, Bytes: r.Bytes}
	if !m.Started.IsZero() {
		l.Started = &m.Started
	}
	if r.End != nil && r.End.Complete {
		l.Items = &r.Items
	}
	return l
}

// startedAt is a time in the zone of who reads it.
func startedAt(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func answeredOf(r runs.Info) string {
	if r.End == nil || !r.End.Complete {
		return strconv.Itoa(r.Answered)
	}
	return fmt.Sprintf("%d of %d", r.Answered, r.Items)
}

func costOf(amount float64) string {
	if amount == 0 {
		return "-"
	}
	return governor.Money(amount)
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
