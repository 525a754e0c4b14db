package expect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
)

// Test measures what the expectations of a pipeline name, and says of each whether it holds.
// With a baseline the answers to the pipeline's own input are compared with it, too; nil: with
// none. The error says why something could not be measured at all: a file that is wrong with the
// values of an expectation's variables (*engine.DiagnosticsError), or a stage that had to stop.
func Test(ctx context.Context, p *engine.Pipeline, baseline *journal.Journal) (*Report, error) {
	def := p.Definition()
	r := &Report{File: p.File().Path, Pipeline: def.Name}
	of := map[*pipeline.Expect]*measurement{}
	for _, m := range measurements(def, baseline) {
		err := p.Examine(ctx, m.set, m.input, func(v *engine.Examined) error { return m.measure(ctx, v) })
		if err != nil {
			return nil, m.explain(err)
		}
		for _, e := range m.expects {
			of[e] = m
		}
		r.Incomplete = r.Incomplete || m.incomplete
		if m.baseline != nil {
			r.Baseline = m.compared
		}
	}
	for _, e := range def.Expects {
		r.Verdicts = append(r.Verdicts, verdict(ctx, e, of[e]))
	}
	return r, nil
}

// measurements are what has to be measured: the expectations that share an input and the values
// of variables share one.
func measurements(def *pipeline.Pipeline, baseline *journal.Journal) (all []*measurement) {
	at := map[string]*measurement{}
	one := func(input *pipeline.Source, set []pipeline.Override) *measurement {
		key := keyOf(input, set)
		if at[key] == nil {
			at[key] = &measurement{input: input, set: set, figures: map[string]*Figure{}}
			all = append(all, at[key])
		}
		return at[key]
	}
	if baseline != nil {
		one(nil, nil).baseline = baseline
	}
	for _, e := range def.Expects {
		if !e.Enabled {
			continue
		}
		m := one(e.Input, e.Set)
		m.expects = append(m.expects, e)
		for _, f := range e.Rule.Figures() {
			if !slices.ContainsFunc(m.wanted, func(have rule.Figure) bool { return have.String() == f.String() }) {
				m.wanted = append(m.wanted, f)
			}
		}
	}
	return all
}

// keyOf tells inputs and values apart.
func keyOf(input *pipeline.Source, set []pipeline.Override) string {
	if input != nil {
		same := *input
		same.Range = hcl.Range{}
		input = &same
	}
	key, err := json.Marshal([]any{input, set})
	if err != nil {
		panic(err) // texts, numbers and lists of them always encode
	}
	return string(key)
}

// explain says which expectations an error is about.
func (m *measurement) explain(err error) error {
	if m.input == nil && m.set == nil {
		return err
	}
	var names []string
	for _, e := range m.expects {
		names = append(names, "expect."+e.Name)
	}
	return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
}

// verdict asks an expectation's rule; m is nil where it is not enabled.
func verdict(ctx context.Context, e *pipeline.Expect, m *measurement) Verdict {
	v := Verdict{Name: e.Name, Description: e.Description, Rule: e.Rule.Text(), Line: e.Range.Start.Line, Outcome: Skipped}
	if m == nil {
		return v
	}
	v.Input, v.Items, v.Outcome = m.path, m.items, Fails
	for _, o := range e.Set {
		if v.Variables == nil {
			v.Variables = map[string]string{}
		}
		v.Variables[strings.TrimPrefix(o.Target, "var.")] = o.Value
	}
	measured := rule.Measured{}
	for _, f := range e.Rule.Figures() {
		found := *m.figures[f.String()]
		measured[found.Figure] = found.seen()
		v.Figures = append(v.Figures, found)
		if found.Error != "" && v.Reason == "" {
			v.Reason = fmt.Sprintf("%s cannot be measured: %s", found.Figure, found.Error)
		}
	}
	if v.Reason != "" {
		return v
	}
	holds, err := e.Rule.Eval(ctx, &rule.Env{Measured: measured})
	switch {
	case err != nil:
		v.Reason = err.Error()
	case holds:
		v.Outcome = Holds
	default:
		for i := range v.Figures {
			v.Figures[i].need(e.Rule.Comparisons())
		}
	}
	return v
}

// seen is the figure as rules see it.
func (f *Figure) seen() (v rule.Value) {
	switch value := f.Value.(type) {
	case float64:
		v.Number = value
	case string:
		v.Text = value
	case bool:
		v.Truth = value
	}
	if f.Interval != nil {
		v.Low, v.High = f.Interval.Low, f.Interval.High
	}
	return v
}
