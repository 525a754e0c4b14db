package plan

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// sampled is how many items make a dry run: all of an input that has no more.
const sampled = 500

// Forecast is what the calls of voters would come to.
type Forecast struct {
	Unknown string // why that cannot be said; empty: it can
	Tried   int    // items of the input that made the dry run
	Failed  int    // of these
	Cause   error  // of the first failure
	Voters  map[string]estimate.Voter
	// Spending is what Options.Spend comes to; nil: that is not asked.
	Spending *Spending
}

// asks reports whether a stage is a voter that calls a service.
func asks(s *pipeline.Stage) bool { return s.Enabled && s.Block == "sample" && s.Info.Network }

// forecast finds out what the voters that call services would ask, by a dry run.
// nil: nothing that items go through calls one.
func (p *Plan) forecast(ctx context.Context, o Options) (*Forecast, error) {
	f := &Forecast{Voters: map[string]estimate.Voter{}}
	asked := false
	for i, stage := range p.Pipeline.Stages {
		switch {
		case !stage.Enabled || !p.Pipeline.Used(i) || !stage.Info.Network:
		case asks(stage):
			asked = true
		default:
			f.Unknown = fmt.Sprintf("%s.%s calls a service, and what it sends is not foreseen", stage.Block, stage.Name)
		}
	}
	for _, k := range p.Pipeline.Knowledge() {
		if k.Embed.Info.Network {
			f.Unknown = cmp.Or(f.Unknown, fmt.Sprintf("knowledge %q is embedded by a service, so nothing can be found in it without asking that", k.Name))
		}
	}
	if asked && f.Unknown == "" {
		f.Unknown = p.impossible()
	}
	switch {
	case f.Unknown != "":
		return f, nil
	case !asked:
		return nil, nil
	}
	return f, p.dryRun(ctx, o, f)
}

// impossible is why no item can go through a pipeline, of whose stages only voters
// call services, without asking or changing anything elsewhere; empty: it can.
func (p *Plan) impossible() string {
	switch p.Items {
	case -1:
		return "the input is standard input, which is left for the run"
	case 0:
		return "the input holds no items"
	}
	for i, k := range p.Pipeline.Knowledge() {
		r := p.Knowledge[i]
		switch {
		case slices.ContainsFunc(r.Asks, func(a enrich.Asks) bool { return a.Passages > 0 }):
			return fmt.Sprintf("knowledge %q is out of date, and enriching it asks a service", k.Name)
		case k.Stdin():
			return fmt.Sprintf("knowledge %q is read from standard input", k.Name)
		case k.Store.Info.Network && r.Added+r.Changed+r.Removed > 0:
			return fmt.Sprintf("knowledge %q is out of date on its server; a run brings it up to date", k.Name)
		}
	}
	return ""
}

// dryRun takes some items through the pipeline, with a stand-in for each voter that
// calls a service.
func (p *Plan) dryRun(ctx context.Context, o Options, f *Forecast) error {
	d := estimate.NewDryRun()
	stages, kept := stage.Options{Fitted: o.Fitted}, run.Journal(nil)
	if o.Spend.IsSet() {
		var err error
		if f.Spending, err = p.spending(ctx, o); err != nil {
			return err
		}
		stages.Ask, kept = f.Spending.ask, f.Spending.spender.Survey(nothing{})
	}
	ready, err := run.Open(ctx, p.Pipeline, run.Options{
		Launch: func(ctx context.Context, l launch.Request) (any, error) {
			if l.Stage.Kind != sdk.KindSample || !l.Stage.Info.Network {
				return o.Launch(ctx, l)
			}
			asked, err := o.Forecaster(ctx, l.Stage)
			return d.Sampler(l.Stage, asked), err
		},
		Options: stages, Samples: o.Samples, Progress: o.Progress, Knowledge: o.Knowledge,
	})
	if err != nil {
		return err
	}
	items, err := o.Rows()
	if err != nil {
		return err
	}
	defer items.Close() //nolint:errcheck // it was only read
	broken := 0         // items that failed on their way
	_, err = ready.Items(ctx, spread(items.Next, p.Items, sampled), kept, func(batch []outcome.Result) error {
		for _, result := range batch {
			if f.Tried++; f.Spending != nil {
				f.Spending.add(result)
			}
			if result.Failure == nil {
				continue
			}
			if result.Failure.Stage != "" {
				broken++
			}
			if f.Failed++; f.Failed == 1 {
				f.Cause = result.Failure
			}
		}
		return nil
	})
	if f.Spending != nil {
		f.Spending.sum(f.Tried, p.Items)
	}
	for _, stage := range p.Pipeline.Stages {
		if !asks(stage) {
			continue
		}
		v := d.Voter(stage.Name)
		switch unknown := estimate.Unknown(p.Pipeline, stage); {
		case unknown != "":
			v.Unknown = unknown
		case v.Unknown == "" && broken > 0:
			v.Unknown = fmt.Sprintf("%s failed before it was asked", terminal.Plural(broken, "item"))
		case v.Unknown == "" && f.Tried < p.Items:
			v.Unknown = fmt.Sprintf("%d of %s were looked at", f.Tried, terminal.Plural(p.Items, "item"))
		}
		f.Voters[stage.Name] = v
	}
	return err
}

// spread returns n of total rows, spread evenly.
func spread(next func() (source.Row, error), total, n int) func() (source.Row, error) {
	n = min(n, total)
	at, given := 0, 0
	return func() (source.Row, error) {
		for given < n {
			row, err := next()
			if err != nil {
				return row, err
			}
			if at++; at-1 == given*total/n {
				given++
				return row, nil
			}
		}
		return source.Row{}, io.EOF
	}
}
