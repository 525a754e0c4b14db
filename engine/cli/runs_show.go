package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/terminal"
)

func newRunsShow() *cobra.Command {
	var state string
	var on clusterFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show what was run and what came of it",
		Long: `Show what was run and what came of it: file, variables, input, knowledge and stages;
how many items were answered, what that took, and the accuracy where the input
says what is expected. ID may be newest. racflow explain shows what made one answer.

With --on SERVERS, or where ID is that of a run at servers of NATS and
` + serversVariable + ` names them: who works at it now and what they lack, what waits, and what it costs.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one run, or newest; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if on.has(args[0]) {
				return on.show(c, state, args[0], asJSON)
			}
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
	on.register(c, "show a run that workers answer")
	return c
}

// runShown is a run with what came of it.
type runShown struct {
	runLine
	Flagged     int                `json:"flagged"`
	Undecided   int                `json:"undecided"`
	Decided     int                `json:"decided,omitempty"` // by people: not scored
	Failed      int                `json:"failed"`
	Provisional int                `json:"provisional"`
	Noted       int                `json:"noted"` // items of which the journal has what was seen
	Scored      int                `json:"scored"`
	Accuracy    *float64           `json:"accuracy,omitempty"`
	Interval    *interval.Interval `json:"interval,omitempty"`
	Manifest    manifest.Manifest  `json:"manifest"`
	Totals      *journal.Totals    `json:"totals,omitempty"` // absent: the run was cut off
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
		share, within := float64(right)/float64(s.Scored), interval.Wilson(right, s.Scored)
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
	if m.Cluster != nil {
		line("workers", "run %s at %s: racflow runs show %[1]s --on %[2]s", m.Cluster.Run, m.Cluster.Servers)
	}
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
	items := fmt.Sprintf("%s answered", answeredOf(runs.Info{Answered: s.Answered, Items: s.items(), End: s.Totals}))
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
