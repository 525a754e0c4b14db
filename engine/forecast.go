package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// rehearsed is how many items an estimate is made with: with all of an input that has
// no more.
const rehearsed = 500

// rehearse finds out what the voters that call services would ask, by taking a
// few items through everything else. nil: nothing that items go through calls one.
func (p *Pipeline) rehearse(ctx context.Context, plan *report.Plan) (*report.Forecast, error) {
	f := &report.Forecast{Voters: map[string]estimate.Voter{}}
	asks := false
	for i, stage := range p.chosen.Stages {
		switch {
		case !stage.Enabled || !p.chosen.Used(i) || !stage.Info.Network:
		case stage.Block == "sample":
			asks = true
		default:
			f.Unknown = fmt.Sprintf("%s.%s calls a service, and what it sends is not foreseen", stage.Block, stage.Name)
		}
	}
	for _, k := range p.chosen.Knowledge() {
		if k.Embed.Info.Network {
			f.Unknown = cmp.Or(f.Unknown, fmt.Sprintf("knowledge %q is embedded by a service, so nothing can be found in it without asking that", k.Name))
		}
	}
	if asks && f.Unknown == "" {
		f.Unknown = p.unrehearsable(plan)
	}
	switch {
	case f.Unknown != "":
		return f, nil
	case !asks:
		return nil, nil
	}
	r := estimate.New()
	ready, err := run.Open(ctx, p.chosen, run.Options{
		Launch: func(ctx context.Context, l run.LaunchRequest) (any, error) {
			if l.Stage.Kind == sdk.KindSample && l.Stage.Info.Network {
				asked, err := p.forecaster(ctx, l.Stage)
				return r.Sampler(l.Stage, asked), err
			}
			return p.launch(ctx, l)
		},
		Building:  p.workspace.options.Events.Building,
		Knowledge: p.workspace.options.Events.Knowledge,
	})
	if err != nil {
		return nil, err
	}
	items, err := p.Rows()
	if err != nil {
		return nil, err
	}
	defer items.Close() //nolint:errcheck // it was only read
	broken := 0         // items that failed on their way
	_, err = ready.Items(ctx, spread(items.Next, plan.Items, rehearsed), func(batch []run.Result) error {
		for _, result := range batch {
			f.Tried++
			if result.Failure != nil {
				if result.Failure.Stage != "" {
					broken++
				}
				if f.Failed++; f.Failed == 1 {
					f.Cause = result.Failure
				}
			}
		}
		return nil
	})
	for _, stage := range p.chosen.Stages {
		if stage.Enabled && stage.Block == "sample" && stage.Info.Network {
			v := r.Voter(stage.Name)
			switch unknown := estimate.Unknown(p.chosen, stage); {
			case unknown != "":
				v.Unknown = unknown
			case v.Unknown == "" && broken > 0:
				v.Unknown = fmt.Sprintf("%s failed before it was asked", terminal.Plural(broken, "item"))
			case v.Unknown == "" && f.Tried < plan.Items:
				v.Unknown = fmt.Sprintf("%d of %s were looked at", f.Tried, terminal.Plural(plan.Items, "item"))
			}
			f.Voters[stage.Name] = v
		}
	}
	return f, err
}

// forecaster opens a voter to ask it what it would send; nil: it does not say. Only a
// built-in one is asked: it calls nobody meanwhile.
func (p *Pipeline) forecaster(ctx context.Context, stage *pipeline.Stage) (sdk.Forecaster, error) {
	if p.workspace.catalog.Command(stage.Use) != nil {
		return nil, nil
	}
	opened, err := stage.Info.Open(ctx, sdk.Setup{Block: stage.Name, Samples: stage.N}, stage.Config.Open)
	if err != nil {
		return nil, &host.ConfigError{Kind: stage.Kind, Block: stage.Name, Errors: sdk.ArgumentErrors(err)}
	}
	asked, _ := opened.(sdk.Forecaster)
	return asked, nil
}

// unrehearsable says why no item can be taken through a pipeline none of whose
// stages but voters calls a service without asking or changing anything elsewhere;
// empty: it can.
func (p *Pipeline) unrehearsable(plan *report.Plan) string {
	if plan.Items < 0 {
		return "the input is standard input, which is left for the run"
	}
	if plan.Items == 0 {
		return "the input holds no items"
	}
	for i, k := range p.chosen.Knowledge() {
		changes := plan.Knowledge[i].Added + plan.Knowledge[i].Changed + plan.Knowledge[i].Removed
		switch {
		case slices.ContainsFunc(plan.Knowledge[i].Asks, func(a knowledge.Asks) bool { return a.Passages > 0 }):
			return fmt.Sprintf("knowledge %q is out of date, and enriching it asks a service", k.Name)
		case k.Source.Path == "-":
			return fmt.Sprintf("knowledge %q is read from standard input", k.Name)
		case k.Store.Info.Network && changes > 0:
			return fmt.Sprintf("knowledge %q is out of date on its server; racflow knowledge build brings it up to date", k.Name)
		}
	}
	return ""
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

// textsOf counts what a service would embed of a source, at most: what is kept
// already is not asked for again.
func (p *Pipeline) textsOf(ctx context.Context, block *pipeline.Knowledge) (knowledge.Report, report.Texts, error) {
	var t report.Texts
	r, err := knowledge.Texts(ctx, block, run.Stages(block, p.launch), func(text string) {
		t.Count++
		t.Tokens += estimate.TokensOf(len([]rune(text)))
	})
	return r, t, err
}
