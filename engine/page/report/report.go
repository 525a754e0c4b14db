package report

import (
	"context"
	_ "embed" // of the assets
	"html/template"
	"iter"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/page"
	"github.com/racflow/racflow/engine/pipeline"
)

// Run is what a page is made of: an explain.Run.
type Run interface {
	ID() string
	Manifest() manifest.Manifest
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

// about is what the page says of a run.
type about struct {
	ID        string               `json:"id"`
	File      string               `json:"file"`
	Pipeline  string               `json:"pipeline"`
	Version   string               `json:"racflow"`
	Started   time.Time            `json:"started"`
	Input     string               `json:"input"`
	Limit     int                  `json:"limit,omitempty"`
	Answers   manifest.Answers     `json:"answers"`
	Variables []manifest.Variable  `json:"variables"`
	Knowledge []manifest.Knowledge `json:"knowledge"`
	Stages    []stage              `json:"stages"`
	Totals    *journal.Totals      `json:"totals"` // null: it was cut off
	Gone      []string             `json:"gone"`
	figures
}

// stage is a stage with what it took.
type stage struct {
	Stage  string         `json:"stage"`
	Use    string         `json:"use"` // empty: its name says it
	Model  string         `json:"model,omitempty"`
	Rows   int            `json:"rows"`
	Busy   float64        `json:"busy_seconds"`
	Tokens *explain.Usage `json:"tokens,omitempty"` // nil: it took none, or the journal does not say
	Cost   float64        `json:"cost,omitempty"`
}

// Of returns the page of a run.
func Of(ctx context.Context, run Run) (page.Page, error) {
	f, items, err := measure(ctx, run)
	if err != nil {
		return page.Page{}, err
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
		if err := kept.read(ctx, run, wanted, func(it *explain.Item) any { return kept.pack(it) }); err != nil {
			return page.Page{}, err
		}
	}
	blocks, err := kept.blocks()
	if err != nil {
		return page.Page{}, err
	}
	return page.Page{
		Title: run.ID(), Brand: "racflow report", Body: template.HTML(reportBody), //nolint:gosec // an asset of this program
		Data:    map[string]any{"run": describe(run, f), "items": columns(list, kept), "all": len(items), "explained": kept.items},
		Blocks:  blocks,
		Modules: []string{page.Table, page.Chart, page.Item, figuresModule, itemsModule, reportModule}, Charts: true,
	}, nil
}

// describe says what was run and what came of it.
func describe(run Run, f figures) about {
	m := run.Manifest()
	a := about{
		ID: run.ID(), File: filepath.Base(m.File), Pipeline: m.Pipeline, Version: m.Version, Started: m.Started, Input: filepath.Base(m.Input.Path), Limit: m.Limit,
		Answers: m.Answers, Variables: append([]manifest.Variable{}, m.Variables...), Knowledge: append([]manifest.Knowledge{}, m.Knowledge...),
		Stages: []stage{}, Totals: run.Totals(), Gone: append([]string{}, run.Gone()...), figures: f,
	}
	known := map[string]manifest.Stage{}
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
