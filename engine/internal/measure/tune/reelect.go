package tune

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// This file holds the elections of answered items again, without some voters or with other weights.
// It uses the same code, including rules, and the same ballots. It calls no voter.
//
// Packages tune and eval decide which items to compare, and measure the gain.

// batchSize is how many items are elected together.
const batchSize = 64

// Election holds the election of a run's items again. It is not safe for concurrent use.
type Election struct {
	run   *run.Run
	again *stage.Election
	held  map[ballots]outcome.Result
}

// ballots identifies an item and the voters whose ballots count, one bit for each voter.
type ballots struct {
	record *stage.Record
	asked  uint64
}

// AskRule asks whether a voter is asked about an item.
type AskRule struct {
	Item int // position among the results
	stage.Voter
}

// NewElection starts the election stage of p, the pipeline of r with other values of variables. r
// must keep ballots (stage.Options.Ballots).
func NewElection(ctx context.Context, r *run.Run, p *pipeline.Pipeline, start stage.Launch) (*Election, error) {
	again, err := r.Graph().Election(ctx, p, start)
	return &Election{r, again, map[ballots]outcome.Result{}}, err
}

// Elect returns the results of items with only the voters for which asked returns true; asked is
// called for each item and voter, in file order. Results have no votes and candidates. Elect does
// not evaluate the voters' accept rules again.
func (e *Election) Elect(ctx context.Context, results []outcome.Result, asked func(AskRule) bool) ([]outcome.Result, error) {
	out := make([]outcome.Result, len(results))
	var records []*stage.Record
	var keys []ballots
	var at []int
	for i := range results {
		old, err := e.record(results[i])
		if err != nil {
			return nil, err
		}
		if old.Row.Err != nil {
			out[i] = results[i]
			continue
		}
		rec, asks, err := e.again.Record(old, func(v stage.Voter) bool { return asked(AskRule{i, v}) })
		if err != nil {
			return nil, err
		}
		key := ballots{old, asks}
		if held, ok := e.held[key]; ok {
			out[i] = held
			continue
		}
		records, keys, at = append(records, rec), append(keys, key), append(at, i)
	}
	elected, err := e.elect(ctx, records)
	if err != nil {
		return nil, err
	}
	for n, key := range keys {
		out[at[n]], e.held[key] = elected[n], elected[n]
	}
	return out, nil
}

// elect holds the election over records, in batches.
func (e *Election) elect(ctx context.Context, records []*stage.Record) ([]outcome.Result, error) {
	out := make([]outcome.Result, len(records))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(records); from += batchSize {
		g.Go(func() error {
			copy(out[from:], e.again.Elect(ctx, records[from:min(from+batchSize, len(records))]))
			return ctx.Err()
		})
	}
	return out, g.Wait()
}

// samples returns, for each item, the samples that the election reads if all voters are asked; nil: the item
// fails.
func (e *Election) samples(ctx context.Context, results []outcome.Result) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(results))
	for i := range results {
		old, err := e.record(results[i])
		if err != nil {
			return nil, err
		}
		if old.Row.Err != nil {
			continue
		}
		rec, _, err := e.again.Record(old, func(stage.Voter) bool { return true })
		if err != nil {
			return nil, err
		}
		if held := e.again.Elect(ctx, []*stage.Record{rec}); held[0].Failure == nil {
			all[i] = e.again.Samples(rec)
		}
	}
	return all, ctx.Err()
}

func (e *Election) record(r outcome.Result) (*stage.Record, error) {
	old := e.run.Record(r.Line)
	if old == nil {
		return nil, errors.New("the item was answered by a run that does not keep ballots")
	}
	return old, nil
}

// ElectionsWithout holds elections again, once without each voter, batch by batch while a run
// answers the items. It is not safe for concurrent use.
type ElectionsWithout struct {
	*Election
	voters []string // in file order; none: no election is held again
}

// mostVoters limits the cost: each voter means another election per item.
const mostVoters = 64

// NewElectionsWithout starts the election stage of p, the pipeline of r, which keeps ballots. A
// pipeline with one voter, or with more than 64, gets no elections.
func NewElectionsWithout(ctx context.Context, r *run.Run, p *pipeline.Pipeline, start stage.Launch) (*ElectionsWithout, error) {
	w := &ElectionsWithout{Election: &Election{run: r}}
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

// Elect calls each for every wanted result and voter, with the result without the voter. For an
// unusable row, each gets the result itself. Elect makes the run forget the ballots of all results.
func (w *ElectionsWithout) Elect(ctx context.Context, results []outcome.Result, wanted func(outcome.Result) bool, each func(voter string, answered, without outcome.Result)) error {
	var answered []outcome.Result
	for _, r := range results {
		if wanted(r) && w.run.Record(r.Line) != nil {
			answered = append(answered, r)
		}
	}
	for _, voter := range w.voters {
		w.held = map[ballots]outcome.Result{} // no election is held twice, so none is kept
		without, err := w.Election.Elect(ctx, answered, func(a AskRule) bool { return a.Stage.Name != voter })
		if err != nil {
			return err
		}
		for i := range answered {
			each(voter, answered[i], without[i])
		}
	}
	for _, r := range results {
		w.run.Forget(r.Line)
	}
	return nil
}
