package reelect

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/stage"
)

// Without holds the election of items again, once without each voter, batch by batch
// while a run answers them. It belongs to one goroutine.
type Without struct {
	run    *run.Run
	again  *stage.Election
	voters []string // in file order; none: no election is held again
}

// mostVoters bounds what an item's ballots cost: one more election for each.
const mostVoters = 64

// NewWithout starts the election stage of p, the pipeline of r, which keeps ballots. A
// pipeline with one voter, or with more than 64, has none to leave out.
func NewWithout(ctx context.Context, r *run.Run, p *pipeline.Pipeline, start launch.Func) (*Without, error) {
	w := &Without{run: r}
	elects := false
	for _, s := range p.Stages {
		switch {
		case !s.Enabled:
		case s.Block == "sample":
			w.voters = append(w.voters, s.Name)
		case s.Block == "elect":
			elects = true
		}
	}
	if !elects || len(w.voters) < 2 || len(w.voters) > mostVoters {
		w.voters = nil
		return w, nil
	}
	var err error
	w.again, err = r.Graph().Election(ctx, p, start)
	return w, err
}

// Elect calls each with what becomes of those results that are wanted without each
// voter, and lets the run forget the ballots of all of them. Of an item whose row cannot
// be used, that is the result itself.
func (w *Without) Elect(ctx context.Context, results []outcome.Result, wanted func(outcome.Result) bool, each func(voter string, answered, without outcome.Result)) error {
	var answered, unusable []outcome.Result
	var ballots []*stage.Record
	for _, r := range results {
		old := w.run.Take(r.Line)
		switch {
		case old == nil || !wanted(r):
		case old.Row.Err != nil:
			unusable = append(unusable, r)
		default:
			answered, ballots = append(answered, r), append(ballots, old)
		}
	}
	without := make([][]outcome.Result, len(w.voters))
	g, gctx := errgroup.WithContext(ctx)
	for n, voter := range w.voters {
		g.Go(func() error {
			records := make([]*stage.Record, len(ballots))
			for i, old := range ballots {
				var err error
				if records[i], err = w.again.Without(old, voter); err != nil {
					return err
				}
			}
			without[n] = w.again.Elect(gctx, records)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for n, voter := range w.voters {
		for i := range answered {
			each(voter, answered[i], without[n][i])
		}
		for _, r := range unusable {
			each(voter, r, r)
		}
	}
	return nil
}
