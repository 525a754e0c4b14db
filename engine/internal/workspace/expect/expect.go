package expect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// maxLost limits how many lost items are named.
const maxLost = 20

// compare compares the answers with the baseline's, item by item. Items with the same id are matched
// in order if both runs have the same number of them; otherwise nobody knows which item is which.
func (m *measurement) compare() error {
	b := &Baseline{Run: m.baseline.ID()}
	if m.baseline.Manifest.Answers != journal.LabelAnswers {
		return fmt.Errorf("run %s did not answer with labels, so it cannot be a baseline: ndcg and recall_at measure passages", b.Run)
	}
	before, seen := map[string]journal.Item{}, map[string]int{}
	nth := func(r outcome.Result) string {
		seen[r.ID]++
		return fmt.Sprintf("%d %s", seen[r.ID], r.ID)
	}
	for item := range m.baseline.Kept() {
		before[nth(item.Result)] = item
	}
	had := maps.Clone(seen)
	clear(seen)
	has := map[string]int{}
	for _, now := range m.results {
		has[now.ID]++
	}
	for _, now := range m.results {
		key := nth(now)
		if !eval.Scored(now) {
			continue
		}
		old, ok := before[key]
		switch {
		case !ok || had[now.ID] != has[now.ID] || old.Status != journal.Answered && old.Status != journal.Failed || old.Result.Decided != nil:
			b.Missing++
			continue
		case old.Row.Label != "" && old.Row.Label != now.Expected:
			b.Relabelled++
			continue
		}
		was := old.Result
		was.Expected = now.Expected
		if old.Status == journal.Failed && was.Failure == nil {
			was.Failure = &outcome.Failure{}
		}
		wasRight, isRight := m.counter.Right(was), m.counter.Right(now)
		b.Paired.Add(wasRight, isRight)
		if wasRight && !isRight && len(b.Lost) < maxLost {
			b.Lost = append(b.Lost, now.ID)
		}
	}
	if b.Paired.Items == 0 {
		return fmt.Errorf("run %s has none of the %d items of %s with the same label: name a run over the same rows", b.Run, len(m.results), m.path)
	}
	b.Worse = b.Paired.Lost > b.Paired.Gained && b.Paired.Chance() < Chance
	m.compared = b
	return nil
}

// measurement is one evaluation, with one input and some values of variables.
type measurement struct {
	input    *pipeline.Source // nil: the pipeline's own input
	set      []pipeline.Override
	expects  []*pipeline.Expect
	wanted   []rule.Figure    // without duplicates
	baseline *journal.Journal // nil: none

	figures    map[string]*Figure // by the text of the figure in the rules
	path       string             // of the input; empty: no input is read
	items      int
	incomplete bool
	compared   *Baseline

	labels  []string // labels of the knowledge
	counter *eval.Counter
	last    string // the stage that returns the last list; empty: none
	report  eval.Report
	results []outcome.Result // without votes and the texts of candidates and lists
	lists   map[string][]float64
	gold    int // items with gold passages
}

// labelled names the figures that need items with a label or gold passages.
var labelled = []string{"accuracy", "f1", "recall", "precision", "answered", "recall_at", "ndcg", "mrr"}

// single names the figures that need no evaluation of the input.
var single = []string{"answer", "found", "leaked"}

func (m *measurement) measure(ctx context.Context, v *workspace.Pipeline) error {
	whole := m.baseline != nil || slices.ContainsFunc(m.wanted, func(f rule.Figure) bool { return !slices.Contains(single, f.Name) })
	if whole {
		if err := m.evaluate(ctx, v); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(m.wanted, func(f rule.Figure) bool { return f.Name == "answer" || f.Name == "found" }) {
		if _, err := v.Start(ctx); err != nil { // later failures are due to the question
			return err
		}
	}
	for _, f := range m.wanted {
		found, err := m.figure(ctx, v, f)
		if err != nil {
			return err
		}
		found.Figure = f.String()
		m.figures[found.Figure] = &found
	}
	if m.baseline != nil {
		return m.compare()
	}
	return nil
}

// evaluate runs the pipeline over the input.
func (m *measurement) evaluate(ctx context.Context, v *workspace.Pipeline) error {
	if m.baseline != nil || slices.ContainsFunc(m.wanted, func(f rule.Figure) bool { return slices.Contains(labelled, f.Name) }) {
		if err := v.Check(); err != nil {
			return err
		}
	}
	started, err := v.Start(ctx)
	if err != nil {
		return err
	}
	m.path, m.labels, m.lists = v.InputPath(), started.Labels(), map[string][]float64{}
	m.counter = eval.NewCounter(m.labels...)
	for _, s := range v.Definition().Stages {
		if s.Enabled && (s.Block == "retrieve" || s.Block == "rerank") {
			m.last = s.Block + "." + s.Name
		}
	}
	m.report, m.incomplete, err = v.Measure(ctx, eval.Options{Results: m.add})
	m.items = m.report.Items
	return err
}

// add collects results.
func (m *measurement) add(batch []outcome.Result) error {
	for _, r := range batch {
		m.addLists(r)
		r.Lists, r.Candidates, r.Votes, r.Citations, r.Fields, r.Gold = nil, nil, nil, nil, nil, nil
		m.results = append(m.results, r)
	}
	return nil
}

// addLists measures the last list of an item with gold passages.
func (m *measurement) addLists(r outcome.Result) {
	if r.Decided != nil || !slices.ContainsFunc(r.Gold, func(g source.Gold) bool { return g.Grade > 0 }) {
		return
	}
	m.gold++
	var list []sdk.Candidate
	for _, l := range r.Lists {
		if l.Stage == m.last {
			list = l.Candidates
		}
	}
	for _, f := range m.wanted {
		if of := ofList[f.Name]; of != nil {
			m.lists[f.String()] = append(m.lists[f.String()], of(f.Args, r.Gold, list))
		}
	}
}

// ofList computes figures from the list that the last retrieve or rerank stage returns.
var ofList = map[string]func(args []any, gold []source.Gold, list []sdk.Candidate) float64{
	"ndcg": func(_ []any, gold []source.Gold, list []sdk.Candidate) float64 { return eval.NDCG(gold, list) },
	"mrr":  func(_ []any, gold []source.Gold, list []sdk.Candidate) float64 { return eval.Reciprocal(gold, list) },
	"recall_at": func(args []any, gold []source.Gold, list []sdk.Candidate) float64 {
		return eval.Recalled(gold, list, wholeNumber(args[0]))
	},
}

// wholeNumber returns an argument that is a whole number.
func wholeNumber(arg any) int {
	if f, ok := arg.(float64); ok {
		return int(f)
	}
	return arg.(int)
}

// need adds, for each failing comparison of this figure, what the comparison would need.
func (f *Figure) need(all []rule.Comparison) {
	v := f.seen()
	for _, c := range all {
		value := v.Number
		switch {
		case c.Figure.String() != f.Figure:
			continue
		case c.Limit == "low":
			value = v.Low
		case c.Limit == "high":
			value = v.High
		}
		if !holds(value, c) {
			f.Needs = append(f.Needs, f.needed(value, c))
		}
	}
}

func holds(value float64, c rule.Comparison) bool {
	switch c.Op {
	case ">=":
		return value >= c.Number
	case ">":
		return value > c.Number
	case "<=":
		return value <= c.Number
	case "<":
		return value < c.Number
	}
	return value == c.Number
}

// needed describes in words what a comparison needs. For a share it gives a number of items.
func (f *Figure) needed(value float64, c rule.Comparison) string {
	what := c.Figure.String()
	if c.Limit != "" {
		what = fmt.Sprintf("%s(%s)", c.Limit, what)
	}
	asked := fmt.Sprintf("%s %s %v", what, c.Op, c.Number)
	switch {
	case value == c.Number && f.Of == 0:
		return asked + ": it is exactly that"
	case f.Of == 0 || c.Op == "==":
		return fmt.Sprintf("%s: it is off by %.3g", asked, math.Abs(value-c.Number))
	}
	of := func(count, of int) float64 {
		switch i := eval.Wilson(count, of); c.Limit {
		case "low":
			return i.Low
		case "high":
			return i.High
		}
		return float64(count) / float64(of)
	}
	if c.Op[0] == '>' {
		if least := sort.Search(f.Of+1, func(n int) bool { return holds(of(n, f.Of), c) }); least <= f.Of {
			return fmt.Sprintf("%s needs at least %d of %d, %d more", asked, least, f.Of, least-f.Count)
		}
	} else if first := sort.Search(f.Of+1, func(n int) bool { return !holds(of(n, f.Of), c) }); first > 0 {
		return fmt.Sprintf("%s allows at most %d of %d, %d fewer", asked, first-1, f.Of, f.Count-first+1)
	}
	return fmt.Sprintf("%s cannot be shown by %d items, whatever their answers are", asked, f.Of)
}

// Test measures the figures that a pipeline's expectations name, and reports which expectations
// hold. Unless baseline is nil, it also compares the answers to the pipeline's own input with the
// baseline's. An error says why measuring failed: a file is wrong with the values of an
// expectation's variables (*workspace.DiagnosticsError), or a stage had to stop.
func Test(ctx context.Context, p *workspace.Pipeline, baseline *journal.Journal) (*Report, error) {
	def := p.Definition()
	r := &Report{File: p.File().Path, Pipeline: def.Name}
	of := map[*pipeline.Expect]*measurement{}
	for _, m := range measurements(def, baseline) {
		err := p.Examine(ctx, m.set, m.input, func(v *workspace.Pipeline) error { return m.measure(ctx, v) })
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

// measurements returns the measurements to make: expectations with the same input and values of
// variables share one.
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

// keyOf identifies an input with its values.
func keyOf(input *pipeline.Source, set []pipeline.Override) string {
	if input != nil {
		same := *input
		same.Range = hcl.Range{}
		input = &same
	}
	key, err := json.Marshal([]any{input, set})
	if err != nil {
		panic(err) // texts, numbers and lists of these always encode
	}
	return string(key)
}

// explain adds the affected expectations to an error.
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

// verdict evaluates an expectation's rule; m is nil if the expectation is not enabled.
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

// seen returns the figure's value for rules.
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
