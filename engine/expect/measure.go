package expect

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// measurement is what is measured at once: with one input and some values of variables.
type measurement struct {
	input    *pipeline.Source // nil: the pipeline's own
	set      []pipeline.Override
	expects  []*pipeline.Expect
	wanted   []rule.Figure    // each once
	baseline *journal.Journal // nil: none

	figures    map[string]*Figure // by what the rules call them
	path       string             // of the input; empty: it was not read
	items      int
	incomplete bool
	compared   *Baseline

	labels  []string // of the knowledge
	counter *eval.Counter
	last    string // the stage that leaves the last list; empty: none does
	report  eval.Report
	results []outcome.Result // without texts of candidates, lists and votes
	lists   map[string][]float64
	gold    int // items with gold passages
}

// What is known of an item before it is answered that a figure needs: a label or gold passages.
var labelled = []string{"accuracy", "f1", "recall", "precision", "answered", "recall_at", "ndcg", "mrr"}

// Figures that no evaluation of the input is needed for.
var single = []string{"answer", "found", "leaked"}

// measure measures what is wanted.
func (m *measurement) measure(ctx context.Context, v *engine.Examined) error {
	whole := m.baseline != nil || slices.ContainsFunc(m.wanted, func(f rule.Figure) bool { return !slices.Contains(single, f.Name) })
	if whole {
		if err := m.evaluate(ctx, v); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(m.wanted, func(f rule.Figure) bool { return f.Name == "answer" || f.Name == "found" }) {
		if _, err := v.Start(ctx); err != nil { // what fails afterwards is the question's
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

// evaluate takes the input through the pipeline.
func (m *measurement) evaluate(ctx context.Context, v *engine.Examined) error {
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

// add takes results.
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

// ofList are the figures of the last list.
var ofList = map[string]func(args []any, gold []source.Gold, list []sdk.Candidate) float64{
	"ndcg": func(_ []any, gold []source.Gold, list []sdk.Candidate) float64 { return eval.NDCG(gold, list) },
	"mrr":  func(_ []any, gold []source.Gold, list []sdk.Candidate) float64 { return eval.Reciprocal(gold, list) },
	"recall_at": func(args []any, gold []source.Gold, list []sdk.Candidate) float64 {
		return eval.Recalled(gold, list, whole(args[0]))
	},
}

// whole is an argument that is a whole number.
func whole(arg any) int {
	if f, ok := arg.(float64); ok {
		return int(f)
	}
	return arg.(int)
}
