package report

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
)

// figures are what a run's answers are worth and took.
type figures struct {
	// Eval is nil where no item has an expected label, or some answers are provisional.
	Eval  *eval.Report    `json:"eval,omitempty"`
	Curve []eval.Coverage `json:"curve,omitempty"`
	Bins  []eval.Bin      `json:"bins,omitempty"`

	took  map[string]*explain.Usage // by stage
	costs map[string]float64
}

// measure goes through the items of a run once.
func measure(ctx context.Context, run Run) (f figures, items []one, err error) {
	labels, m := run.Labels(), run.Manifest()
	counter, sure := eval.NewCounter(labels...).Of(run.Definition()), eval.NewConfidences(labels...)
	var totals outcome.Totals
	f.took, f.costs = map[string]*explain.Usage{}, map[string]float64{}
	for b, err := range run.Briefs(ctx) {
		if err != nil {
			return f, nil, err
		}
		r := outcomeOf(b, m.Answers)
		items = append(items, oneOf(b, eval.Scored(r) && b.Status != journal.Unreached, counter.Right(r)))
		if b.Status == journal.Unreached {
			continue
		}
		totals.Add(r)
		counter.Add(r)
		sure.Add(r)
		f.spend(b)
	}
	if end := run.Totals(); end != nil {
		totals.Elapsed = time.Duration(end.Seconds * float64(time.Second))
	}
	if report := counter.Report(totals); report.Scored > 0 && totals.Provisional == 0 {
		report.Calibration = sure.Report()
		report.Weigh(run.Weights())
		report.Voters, report.Labels, report.Confused = some(report.Voters), some(report.Labels), some(report.Confused)
		f.Eval, f.Curve, f.Bins = &report, sure.Curve(), sure.Bins()
	}
	return f, items, nil
}

// some is a list as the page's modules want it: an empty one is a list, too.
func some[T any](all []T) []T { return append([]T{}, all...) }

// spend adds what the voters took for an item.
func (f *figures) spend(b *explain.Brief) {
	for voter, cost := range b.Cost {
		f.costs["sample."+voter] += cost
	}
	for voter, u := range b.Usages {
		sum := f.took["sample."+voter]
		if sum == nil {
			sum = new(explain.Usage)
			f.took["sample."+voter] = sum
		}
		sum.Input, sum.Cached, sum.Output = sum.Input+u.Input, sum.Cached+u.Cached, sum.Output+u.Output
	}
}

// outcomeOf is an item as package eval measures it.
func outcomeOf(b *explain.Brief, answers manifest.Answers) outcome.Result {
	r := outcome.Result{
		Line: b.Line, ID: b.ID, Expected: b.Expected, Answer: string(b.Answer), Agreement: b.Agreement, Confidence: b.Confidence, Flagged: b.Flagged, Reason: b.Reason, Decided: b.Decided,
		RetrievalOnly: answers == manifest.Passages, FreeText: answers == manifest.Texts,
	}
	for _, v := range b.Votes {
		r.Votes = append(r.Votes, outcome.Vote{Voter: v.Voter, Answer: v.Answer, Weight: v.Weight, Accepted: v.Accepted, Reason: v.Reason})
	}
	if b.Error != nil {
		r.Failure = &outcome.Failure{Stage: b.Error.Stage, Err: errors.New(b.Error.Message)}
	}
	for _, voter := range b.Missing {
		r.Missing = append(r.Missing, &outcome.Failure{Stage: voter, Err: errors.New("it had to stop")})
	}
	return r
}
