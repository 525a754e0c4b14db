package eval

import (
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/outcome"
)

// Report sums up what was counted.
func (c *Counter) Report(t outcome.Totals) Report {
	c.flags.Flagged = c.flags.Caught + c.flags.Right
	r := Report{
		Items: t.Items, Scored: c.scored, Decided: c.decided, Failed: t.Failed, Undecided: t.Undecided, Flagged: t.Flagged,
		Accuracy: share(c.right, c.scored), AccuracyInterval: interval.Wilson(c.right, c.scored), Flags: c.flags, Confused: confusions(c.confused), InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
	}
	if c.out.items > 0 {
		r.Scope = &Scope{
			In: c.in.items, Out: c.out.items, Accuracy: share(c.in.right, c.in.items), Interval: interval.Wilson(c.in.right, c.in.items),
			Unanswered: share(c.in.unanswered, c.in.items),
			Recall:     share(c.out.right, c.out.items), RecallInterval: interval.Wilson(c.out.right, c.out.items),
		}
	}
	if c.answered > 0 {
		r.Agreement = c.agreement / float64(c.answered)
	}
	if t.Elapsed > 0 {
		r.ItemsPerSecond = float64(t.Items) / t.Elapsed.Seconds()
	}
	slices.Sort(c.latencies)
	r.P50, r.P99 = quantile(c.latencies, .50), quantile(c.latencies, .99)
	for _, name := range slices.Sorted(maps.Keys(c.labels)) {
		of := c.labels[name]
		l := Label{
			Label: name, Support: of.support, Answered: of.answered,
			Precision: share(of.right, of.answered), Recall: share(of.right, of.support),
			F1: share(2*of.right, of.answered+of.support),
		}
		r.Labels = append(r.Labels, l)
		r.MacroF1 += l.F1 / float64(len(c.labels))
	}
	for _, name := range c.voters {
		r.Voters = append(r.Voters, c.report(name))
	}
	for _, s := range t.Stages {
		r.Stages = append(r.Stages, StageTime{s.Stage, s.Rows, s.Busy.Seconds()})
	}
	return r
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// quantile returns the q-quantile of sorted durations in milliseconds, by the
// nearest-rank method.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i]) / float64(time.Millisecond)
}
