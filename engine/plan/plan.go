package plan

import (
	"context"
	"errors"
	"io"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/sdk"
)

// Plan is what a run would do.
type Plan struct {
	File      *pipeline.File
	Pipeline  *pipeline.Pipeline
	Items     int // in the input; -1: not known before it is read
	Invalid   int // rows of the input that cannot be used
	Knowledge []build.Report
	Texts     map[string]Texts // by knowledge: what a service would embed, at most
	Forecast  *Forecast        // nil: nothing that items go through calls a service
	Models    []Model          // that stages ask
	Plugins   []Plugin         // of third parties
}

// Texts are texts that a service would be sent.
type Texts struct{ Count, Tokens int }

// Rows are the rows of an input.
type Rows interface {
	Next() (source.Row, error) // io.EOF after the last one
	Close() error
}

// Options are what a plan is made with.
type Options struct {
	Launch  launch.Func
	Fitted  string // as stage.Options.Fitted
	Samples string // as knowledge.Options.Samples
	// Forecaster opens a voter to ask it what it would send, calling nobody; nil: it does not
	// say.
	Forecaster func(context.Context, *pipeline.Stage) (sdk.Forecaster, error)
	// Spending says what a voter takes for an item where Spend is set: answers in the response
	// cache count as if they were paid for.
	Spending func(context.Context, spend.Limit) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error)
	// Enricher is the same for an enricher.
	Enricher  func(context.Context, *pipeline.Stage) (sdk.EnrichForecaster, error)
	Spend     spend.Limit                            // whose effect is forecast, if it is set
	Rows      func() (Rows, error)                   // open the input; nil: it can be read only once
	Models    func(context.Context) ([]Model, error) // that stages ask, calling nobody
	Knowledge func(build.Report)
	Progress  progress.Func
}

// Make plans a run of one of the pipelines of a file.
func Make(ctx context.Context, f *pipeline.File, p *pipeline.Pipeline, o Options) (*Plan, error) {
	plan := &Plan{File: f, Pipeline: p, Items: -1, Texts: map[string]Texts{}}
	err := plan.count(o)
	if err == nil {
		err = plan.compare(ctx, o)
	}
	if err == nil {
		plan.Plugins, err = plugins(p)
	}
	if err == nil {
		plan.Models, err = o.Models(ctx)
	}
	if err == nil {
		plan.Forecast, err = plan.forecast(ctx, o)
	}
	return plan, err
}

// count counts the items.
func (p *Plan) count(o Options) error {
	if o.Rows == nil {
		return nil
	}
	rows, err := o.Rows()
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	for p.Items = 0; ; p.Items++ {
		row, err := rows.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case row.Err != nil:
			p.Invalid++
		}
	}
}

// compare compares the knowledge that the pipeline searches with its sources, and looks at collections
// that somebody else makes. Where a
// service embeds, that is not asked: the texts are only counted, and those among them
// that are embedded already would not be sent again.
func (p *Plan) compare(ctx context.Context, o Options) error {
	for _, block := range p.Pipeline.Knowledge() {
		r := build.Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		foresee := enrich.Forecasters{}
		var err error
		for _, s := range block.Enrichers() {
			if s.Info.Network {
				if foresee[s], err = o.Enricher(ctx, s); err != nil {
					return err
				}
			}
		}
		switch {
		case block.Stdin():
		case block.Embed.Info.Network && !block.Attached():
			var t Texts
			r, err = build.Texts(ctx, block, launch.Knowledge(block, o.Launch), foresee, func(text string) {
				t.Count++
				t.Tokens += sdk.EstimateTokens(len([]rune(text)))
			})
			p.Texts[block.Name] = t
		default:
			var k *knowledge.Knowledge
			if k, err = knowledge.Open(ctx, block, launch.Knowledge(block, o.Launch), knowledge.Options{Plan: true, Foresee: foresee, Samples: o.Samples}); err == nil {
				r = k.Report
			}
		}
		if err != nil {
			return err
		}
		p.Knowledge = append(p.Knowledge, r)
	}
	return nil
}
