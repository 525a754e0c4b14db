package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const runsLong = `List, look into, compare, resume and remove the runs that are kept in --state.

Runs are numbered in the order in which they began: run-000001 is the first, and
no number is given twice. Where a run is to be named, newest is the last one.

A run that owes something is kept until it is resumed or removed: one that was
killed or interrupted, broke off, has items that were left or lack a voter, or
items that failed after a model had been asked about them. Of the others the
newest 20 are kept, or what the journal block of the pipeline says; a run that
removes old ones says which.`

func newRuns() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, show, compare, resume, merge and remove runs",
		Long:  runsLong,
	}
	c.AddCommand(newRunsList(), newRunsShow(), newRunsDiff(), newRunsResume(), newRunsMerge(), newRunsRemove())
	return c
}

// runOf finds the run that a person names, in a state folder.
func runOf(state, name string) (journal.Runs, string, error) {
	kept := journal.RunsOf(state)
	if name != workspace.Newest {
		return kept, name, nil
	}
	last, ok := kept.Last()
	if !ok {
		return kept, "", fmt.Errorf("no run is kept in %s", state)
	}
	return kept, last, nil
}

const runsListLong = `Show the runs that are kept, oldest first: with the items that are answered, which
resuming the run does not ask again, of those that the input has, where the run came
to its end; the tokens and the cost of these answers; and its state. That is one of

  complete      there is nothing to resume
  unfinished    it was killed or interrupted, broke off, or has provisional answers
  failed items  its input is worked through, and some items failed
  at work       a process is working on it
  damaged       what says what was run cannot be read, or was changed`

func newRunsList() *cobra.Command {
	var state string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the runs, with their progress",
		Long:  runsListLong,
		Example: `  racflow runs list
  racflow runs list --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all := journal.RunsOf(state).List()
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
	return c
}

// runLine is a run in JSON.
type runLine struct {
	Run      string           `json:"run"`
	Started  *time.Time       `json:"started,omitempty"`
	File     string           `json:"file,omitempty"`
	Pipeline string           `json:"pipeline,omitempty"`
	Input    string           `json:"input,omitempty"`
	State    journal.RunState `json:"state"`
	Answered int              `json:"answered"`
	Items    *int             `json:"items,omitempty"` // of the input; absent: not known
	Tokens   uint64           `json:"tokens"`
	Cost     float64          `json:"cost"`
	Bytes    int64            `json:"bytes"`
}

func listed(r journal.RunInfo) runLine {
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

// startedAt formats a time in the reader's time zone.
func startedAt(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func answeredOf(r journal.RunInfo) string {
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

// shownPath returns a path for people: relative if it lies below the working directory.
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
		Short: "Remove runs: they can no longer be resumed or shown",
		Example: `  racflow runs remove run-000001
  racflow runs remove run-000001 run-000002`,
		SuggestFor: []string{"rm", "delete"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the runs to remove; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			if err := workspace.CheckState(state); err != nil {
				return err
			}
			remove := journal.RunsOf(state).Remove
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
	return c
}

// maxNamed is the number of runs that a line names.
const maxNamed = 5

// removedRuns reports which finished runs were removed when another run began.
func removedRuns(ids []string) string {
	names := ids[:min(len(ids), maxNamed)]
	more := ""
	if n := len(ids) - len(names); n > 0 {
		more = fmt.Sprintf(", %d more", n)
	}
	return fmt.Sprintf("removed %s beyond those that are kept: %s%s", terminal.Plural(len(ids), "finished run"), strings.Join(names, ", "), more)
}

const runsShowLong = `Show what was run and what came of it: file, variables, input, knowledge and stages;
how many items were answered, what that took, and the accuracy where the input
says what is expected. ID may be newest. racflow explain shows what made one answer.`

func newRunsShow() *cobra.Command {
	var state string
	var asJSON bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show one run: file, input, stages, figures",
		Long:  runsShowLong,
		Example: `  racflow runs show newest
  racflow runs show run-000001 --json`,
		Args: words(1, "name one run, or newest; racflow runs list shows them"),
		RunE: func(c *cobra.Command, args []string) error {
			kept, id, err := runOf(state, args[0])
			if err != nil {
				return err
			}
			j, err := kept.Open(id)
			if err != nil {
				return err
			}
			defer j.Close(nil) //nolint:errcheck // it was only read
			reportChanged(c.ErrOrStderr(), j)
			shown := runShown{runLine: listed(kept.Info(id)), Manifest: j.Manifest, Totals: kept.End(id)}
			shown.measure(j)
			if asJSON {
				return writeJSON(c.OutOrStdout(), shown)
			}
			return shown.write(c.OutOrStdout(), filepath.Join(state, "runs", id))
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// runShown is a run with its results.
type runShown struct {
	runLine
	Flagged     int              `json:"flagged"`
	Undecided   int              `json:"undecided"`
	Decided     int              `json:"decided,omitempty"` // by people: not scored
	Failed      int              `json:"failed"`
	Provisional int              `json:"provisional"`
	Noted       int              `json:"noted"` // items for which the journal recorded what was seen
	Scored      int              `json:"scored"`
	Accuracy    *float64         `json:"accuracy,omitempty"`
	Interval    *eval.Interval   `json:"interval,omitempty"`
	Manifest    journal.Manifest `json:"manifest"`
	Totals      *journal.Totals  `json:"totals,omitempty"` // absent: the run was cut off
}

// measure counts the items of the run.
func (s *runShown) measure(j *journal.Journal) {
	right := 0
	for item := range j.Kept() {
		r := item.Result
		if item.Seen != nil {
			s.Noted++
		}
		switch {
		case item.Status == journal.Failed:
			s.Failed++
			continue
		case item.Status == journal.Provisional:
			s.Provisional++
		case r.Answer == "" && !r.RetrievalOnly:
			s.Undecided++
		}
		if r.Flagged {
			s.Flagged++
		}
		if r.Decided != nil {
			s.Decided++
		} else if item.Row.Label != "" && !r.RetrievalOnly && !r.FreeText {
			if s.Scored++; r.Answer == item.Row.Label {
				right++
			}
		}
	}
	if s.Scored > 0 && s.Provisional == 0 {
		share, within := float64(right)/float64(s.Scored), eval.Wilson(right, s.Scored)
		s.Accuracy, s.Interval = &share, &within
	}
}

func (s *runShown) write(w io.Writer, folder string) error {
	m := s.Manifest
	tw := terminal.NewTable(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", name, terminal.Escape(fmt.Sprintf(format, args...)))
	}
	took := ""
	if s.Totals != nil {
		took = fmt.Sprintf(", ended %s after %s", startedAt(s.Totals.Ended), time.Duration(s.Totals.Seconds*float64(time.Second)).Round(100*time.Millisecond))
	}
	line("run", "%s, %s", s.Run, s.State)
	if s.Totals != nil && s.Totals.Reason != "" {
		line("why", "%s", message(errors.New(s.Totals.Reason)))
	}
	line("started", "%s%s", startedAt(m.Started), took)
	line("file", "%s, pipeline %s", shownPath(m.File), m.Pipeline)
	line("input", "%s", shownPath(m.Input.Path))
	for _, v := range m.Variables {
		line("variable", "%s = %s (%s)", v.Name, v.Value, v.From)
	}
	for _, k := range m.Knowledge {
		line("knowledge", "%s, generation %s", k.Name, k.Collection)
	}
	for _, stage := range m.Stages {
		model, price := "", ""
		if stage.Model != "" {
			model = ", model " + stage.Model
		}
		if p := stage.Price; p != nil {
			price = fmt.Sprintf(", %v in and %v out per million tokens", p.Input, p.Output)
		}
		line("stage", "%s: %s of %s %s%s%s", stage.Stage, stage.Use, stage.Plugin, stage.Version, model, price)
	}
	items := fmt.Sprintf("%s answered", answeredOf(journal.RunInfo{Answered: s.Answered, Items: s.items(), End: s.Totals}))
	for _, part := range []struct {
		n    int
		name string
	}{{s.Undecided, undecided}, {s.Decided, "decided by people"}, {s.Flagged, "flagged"}, {s.Failed, "failed"}, {s.Provisional, "provisional"}} {
		if part.n > 0 {
			items += fmt.Sprintf(", %d %s", part.n, part.name)
		}
	}
	line("items", "%s", items)
	if s.Accuracy != nil {
		line("accuracy", "%.3f (%s) of %s", *s.Accuracy, between(*s.Interval), terminal.Plural(s.Scored, "item"))
	}
	if s.Accuracy == nil && s.Scored > 0 {
		line("accuracy", "none while answers are provisional: racflow runs resume %s asks for the rest", s.Run)
	}
	line("took", "%d tokens, cost %s", s.Tokens, costOf(s.Cost))
	line("kept", "%s in %s; what was seen of %s", size(s.Bytes), folder, terminal.Plural(s.Noted, "item"))
	return tw.Flush()
}

func (s *runShown) items() int {
	if s.Items == nil {
		return 0
	}
	return *s.Items
}
