package page

import (
	"cmp"
	"context"
	_ "embed" // of the assets
	"errors"
	"html/template"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/sdk"
)

// This file makes the page that explains a run.
//
// The page has the run's totals; for a run with labels the measurements of package eval, with
// accuracy by coverage and calibration; cost and time by stage; and a table of the items. Failed,
// wrong and flagged items come first. Each item opens to the details of its answer, from package
// explain.
//
// The details of answers are in blocks of a few items. The page unpacks a block when a person opens
// one of its items. One block has the texts of all candidates. When the page reaches about 12 MB,
// the remaining items have no details, and the page says so. It lists at most 50,000 items. The
// same run gives the same bytes, as long as all its details exist.
//
// The file measures nothing and looks up nothing itself.

// figures has the quality and the cost of a run's answers.
type figures struct {
	// Eval is nil if no item has an expected label, or some answers are provisional.
	Eval  *eval.Report    `json:"eval,omitempty"`
	Curve []eval.Coverage `json:"curve,omitempty"`
	Bins  []eval.Bin      `json:"bins,omitempty"`

	took  map[string]*explain.Usage // by stage
	costs map[string]float64
}

// measure reads the items of a run once.
func measure(ctx context.Context, run ReportedRun) (f figures, items []one, err error) {
	labels, m := run.Labels(), run.Manifest()
	counter, sure := eval.NewCounter(labels...).Of(run.Definition()), eval.NewConfidences(labels...)
	var totals outcome.Totals
	f.took, f.costs = map[string]*explain.Usage{}, map[string]float64{}
	for b, err := range run.Briefs(ctx) {
		if err != nil {
			return f, nil, err
		}
		r := outcomeOf(b, m.Answers, m.LabelForm)
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

// some returns a list that is never nil, so that the page's modules get [] and not null.
func some[T any](all []T) []T { return append([]T{}, all...) }

// spend adds the usage and cost of the voters for an item.
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

// outcomeOf converts an item to a result for package eval.
func outcomeOf(b *explain.Brief, answers journal.AnswerKind, form sdk.LabelForm) outcome.Result {
	r := outcome.Result{
		Line: b.Line, ID: b.ID, Expected: b.Expected, Answer: string(b.Answer), Verdict: b.Verdict, Votes: b.Votes,
		Form: form, RetrievalOnly: answers == journal.PassageAnswers, FreeText: answers == journal.TextAnswers,
	}
	if b.Error != nil {
		r.Failure = &outcome.Failure{Stage: b.Error.Stage, Err: errors.New(b.Error.Message)}
	}
	for _, voter := range b.Missing {
		r.Missing = append(r.Missing, &outcome.Failure{Stage: voter, Err: errors.New("it had to stop")})
	}
	return r
}

// ReportedRun is the source of a page; *explain.Run implements it.
type ReportedRun interface {
	ID() string
	Manifest() journal.Manifest
	Definition() *pipeline.Pipeline // nil: the file is gone
	Weights() pipeline.Weights
	Totals() *journal.Totals
	Labels() []string
	Gone() []string
	Briefs(ctx context.Context) iter.Seq2[*explain.Brief, error]
	Items(ctx context.Context, want func(*explain.Brief) bool) iter.Seq2[*explain.Item, error]
}

var (
	//go:embed assets/report.html
	reportBody string
	//go:embed assets/items.js
	itemsModule string
	//go:embed assets/figures.js
	figuresModule string
	//go:embed assets/report.js
	reportModule string
)

// about is a page's description of a run.
type about struct {
	ID        string                      `json:"id"`
	File      string                      `json:"file"`
	Pipeline  string                      `json:"pipeline"`
	Version   string                      `json:"racflow"`
	Started   time.Time                   `json:"started"`
	Input     string                      `json:"input"`
	Limit     int                         `json:"limit,omitempty"`
	Answers   journal.AnswerKind          `json:"answers"`
	Form      sdk.LabelForm               `json:"form,omitzero"`
	Variables []journal.ManifestVariable  `json:"variables"`
	Knowledge []journal.ManifestKnowledge `json:"knowledge"`
	Stages    []stage                     `json:"stages"`
	Totals    *journal.Totals             `json:"totals"` // null: the run was cut off
	Gone      []string                    `json:"gone"`
	figures
}

// stage is a stage with its time and cost.
type stage struct {
	Stage  string         `json:"stage"`
	Use    string         `json:"use"` // empty: it is part of the stage's name
	Model  string         `json:"model,omitempty"`
	Rows   int            `json:"rows"`
	Busy   float64        `json:"busy_seconds"`
	Tokens *explain.Usage `json:"tokens,omitempty"` // nil: the stage used none, or the journal does not have them
	Cost   float64        `json:"cost,omitempty"`
}

// RunPage returns the page of a run.
func RunPage(ctx context.Context, run ReportedRun) (Page, error) {
	f, items, err := measure(ctx, run)
	if err != nil {
		return Page{}, err
	}
	list := listed(items)
	kept := newDetails()
	for _, notable := range []bool{true, false} {
		wanted := map[int]bool{}
		for _, one := range list {
			if one.notable() == notable {
				wanted[one.line] = true
			}
		}
		if err := kept.read(ctx, run, wanted); err != nil {
			return Page{}, err
		}
	}
	blocks, err := kept.blocks()
	if err != nil {
		return Page{}, err
	}
	return Page{
		Title: run.ID(), Brand: "racflow report", Body: template.HTML(reportBody), //nolint:gosec // an asset of this program
		Data:    map[string]any{"run": describe(run, f), "items": columns(list, kept), "all": len(items), "explained": kept.items},
		Blocks:  blocks,
		Modules: []string{Table, Chart, Item, figuresModule, itemsModule, reportModule}, Charts: true,
	}, nil
}

// describe describes a run and its results.
func describe(run ReportedRun, f figures) about {
	m := run.Manifest()
	a := about{
		ID: run.ID(), File: filepath.Base(m.File), Pipeline: m.Pipeline, Version: m.Version, Started: m.Started, Input: filepath.Base(m.Input.Path), Limit: m.Limit,
		Answers: m.Answers, Form: m.LabelForm, Variables: append([]journal.ManifestVariable{}, m.Variables...), Knowledge: append([]journal.ManifestKnowledge{}, m.Knowledge...),
		Stages: []stage{}, Totals: run.Totals(), Gone: append([]string{}, run.Gone()...), figures: f,
	}
	known := map[string]journal.ManifestStage{}
	for _, s := range m.Stages {
		known[s.Stage] = s
	}
	add := func(name string, rows int, busy float64) {
		of := known[name]
		a.Stages = append(a.Stages, stage{name, of.Use, of.Model, rows, busy, f.took[name], f.costs[name]})
	}
	if a.Totals == nil {
		for _, s := range m.Stages {
			add(s.Stage, 0, 0)
		}
		return a
	}
	for _, s := range a.Totals.Stages {
		add(s.Stage, s.Rows, s.Busy)
	}
	return a
}

// one is an item's row in the table.
type one struct {
	line                       int
	id, text, expected, answer string
	sure                       float64
	state                      string // letters: see oneOf
}

const (
	mostRows = 50_000 // rows of a page
	mostText = 240    // characters of a text in the table
)

// oneOf returns the row of an item. Letters make up its state: e failed, w wrong, r right, f
// flagged, n no answer, d decided by a person, p provisional (a voter is missing), u not reached.
func oneOf(b *explain.Brief, scored, right bool) one {
	o := one{line: b.Line, id: b.ID, text: beginning(b.Text), expected: b.Expected, answer: beginning(string(b.Answer)), sure: cmp.Or(b.Confidence, b.Agreement)}
	if len(b.Candidates) > 0 && o.answer == "" {
		o.answer = beginning(b.Candidates[0].Text)
	}
	for _, state := range []struct {
		letter string
		is     bool
	}{
		{"e", b.Error != nil}, {"w", scored && !right && b.Error == nil}, {"r", scored && right}, {"f", b.Flagged},
		{"n", b.Answer == "" && b.Error == nil && len(b.Candidates) == 0 && b.Status != journal.Unreached}, {"d", b.Decided != nil}, {"p", b.Status == journal.Provisional}, {"u", b.Status == journal.Unreached},
	} {
		if state.is {
			o.state += state.letter
		}
	}
	return o
}

func (o one) is(letter string) bool { return strings.Contains(o.state, letter) }

// notable reports whether a person may want to look at the item.
func (o one) notable() bool { return o.rank() < plain }

const plain = 4 // the rank of unremarkable items

// rank orders the items of the table: low ranks come first.
func (o one) rank() int {
	switch {
	case o.is("e"):
		return 0
	case o.is("w") && !o.is("f"):
		return 1
	case o.is("f"), o.is("n"):
		return 2
	case o.is("p"):
		return 3
	case o.is("u"):
		return plain + 1
	}
	return plain
}

// listed returns the items of the table in this order: failed items; wrong items without a flag, the
// surest first; flagged or unanswered items, the most doubtful first; provisional items; other
// items; unreached items.
func listed(items []one) []one {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b one) int {
		order := cmp.Compare(a.rank(), b.rank())
		switch {
		case order != 0 || a.rank() > 2:
		case a.rank() == 1:
			order = cmp.Compare(b.sure, a.sure)
		case a.rank() == 2:
			order = cmp.Compare(a.sure, b.sure)
		}
		return order
	})
	return items[:min(len(items), mostRows)]
}

// columns returns rows in the form that the page gets.
func columns(list []one, kept *details) map[string]any {
	lines, ids, texts, expected, answers, sure, states, at := []int{}, []string{}, []string{}, []string{}, []string{}, []float64{}, []string{}, []int{}
	for _, o := range list {
		lines, ids, texts, expected, answers = append(lines, o.line), append(ids, o.id), append(texts, o.text), append(expected, o.expected), append(answers, o.answer)
		sure, states, at = append(sure, o.sure), append(states, o.state), append(at, kept.place(o.line))
	}
	return map[string]any{"line": lines, "id": ids, "text": texts, "expected": expected, "answer": answers, "sure": sure, "state": states, "at": at}
}

// beginning shortens a text for the table.
func beginning(text string) string { return cut(text, mostText) }

// cut returns at most the given number of characters of a text.
func cut(text string, most int) string {
	n := 0
	for at := range text {
		if n++; n > most {
			return text[:at] + "…"
		}
	}
	return text
}
