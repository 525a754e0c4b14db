package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/spend"
)

// Part is a run that another process has begun, and in which this one takes part: it answers
// what that process's Remote is asked.
type Part struct {
	Manifest manifest.Manifest
	Spend    spend.Limit // of the run, by which the items that paid voters are asked about are chosen
}

// DifferentError says that a pipeline is not that of a run in which it was to take part: its
// answers would be others.
type DifferentError struct {
	Differences []string // what is different here
}

func (e *DifferentError) Error() string {
	return "answers would differ from those of the run: " + strings.Join(e.Differences, "; ")
}

// Join makes ready to take part in the run of Options.Part: the stages start, with what they
// chose when the run began, and its knowledge is opened as it stands. Nothing is built. A
// *DifferentError says that answers of this process would be others.
func (p *Pipeline) Join(ctx context.Context) error {
	part := p.workspace.options.Part
	p.recall(part.Manifest.Stages)
	if part.Spend.IsSet() {
		forecast, err := p.spendForecast(ctx, part.Spend)
		if err != nil {
			return p.explain(err)
		}
		p.clerk = spend.NewClerk(spend.Options{Limit: part.Spend, Forecast: forecast, Cost: p.chosen.Cost})
	}
	now, err := p.depends(ctx)
	if err != nil {
		return err
	}
	now.Input, now.Limit = part.Manifest.Input, part.Manifest.Limit // of which this process has nothing
	all := part.Manifest.Differences(now)
	if was := part.Manifest.Revision; was != "" && now.Revision != "" && was != now.Revision { // one version has many of them
		all = append(all, fmt.Sprintf("racflow was built from revision %s, there from %s", now.Revision, was))
	}
	if now.Labels != part.Manifest.Labels {
		all = append(all, "the labels of the knowledge")
	}
	if len(all) > 0 {
		return &DifferentError{all}
	}
	return nil
}

// Take takes an order of the run of Options.Part through the stages. Several may be under way at
// a time. An error says that the order is not answered here, and may be elsewhere.
func (p *Pipeline) Take(ctx context.Context, o run.Order) (run.Answers, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return run.Answers{}, err
	}
	if p.clerk == nil || o.Pass == run.Once {
		if o.Pass != run.Once {
			return run.Answers{}, fmt.Errorf("an order of pass %d in a run that takes one", o.Pass)
		}
		return r.Work(ctx, o.Rows)
	}
	lines := make([]int, len(o.Rows))
	for i, row := range o.Rows {
		lines[i] = row.Line
	}
	if err := p.clerk.Begin(ctx, lines, o.Pass == run.Asking); err != nil {
		return run.Answers{}, err
	}
	a, err := r.Work(ctx, o.Rows)
	a.Bills = p.clerk.End(lines)
	return a, err
}

// stands are the generations of the run; nil: this process takes no part in another's run.
func (p *Part) stands() map[string]run.Generation {
	if p == nil {
		return nil
	}
	all := map[string]run.Generation{}
	for _, k := range p.Manifest.Knowledge {
		all[k.Name] = run.Generation(k)
	}
	return all
}
