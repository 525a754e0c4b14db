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

// This file holds the elections of answered items again, without some of their voters or with other
// weights: by the same code, rules included, on the same ballots. It calls no voter.
//
// Packages tune and eval decide which items to compare, and measure the gain.

// Ballots are the samples of voters for items. The election's rules are already evaluated, so that
// elections with many weights cost little more than counting.
type Ballots struct {
	results []outcome.Result
	items   stage.Items
	places  []int // indexes in items, by position among the results; -1: the row could not be read
}

// Prepare returns the ballots of items, from the voters for which asked returns true.
func (e *Election) Prepare(ctx context.Context, results []outcome.Result, asked func(AskRule) bool) (*Ballots, error) {
	b := &Ballots{results: results, places: make([]int, len(results))}
	var records []*stage.Record
	for i := range results {
		old, err := e.record(results[i])
		if err != nil {
			return nil, err
		}
		if b.places[i] = -1; old.Row.Err != nil {
			continue
		}
		rec, _, err := e.again.Record(old, func(v stage.Voter) bool { return asked(AskRule{i, v}) })
		if err != nil {
			return nil, err
		}
		b.places[i] = len(records)
		records = append(records, rec)
	}
	b.items = e.again.Prepare(ctx, records)
	return b, ctx.Err()
}

// Samples returns the samples that the election reads for an item.
func (b *Ballots) Samples(i int) []sdk.Sample {
	if b.places[i] < 0 {
		return nil
	}
	return b.items.Batch.Items[b.places[i]].Samples
}

// Hold holds the election over some of the items, by position. Its results have no votes, and it
// asks no fallback of the election.
func (e *Election) Hold(ctx context.Context, b *Ballots, at []int) ([]outcome.Result, error) {
	out := make([]outcome.Result, len(at))
	err := batches(ctx, len(at), func(ctx context.Context, from, to int) error {
		batch := sdk.Batch{Labels: b.items.Batch.Labels}
		var places []int
		for n := from; n < to; n++ {
			place := b.places[at[n]]
			if decided, ok := b.items.Decided[place]; ok {
				out[n] = decided
			} else if place < 0 {
				out[n] = b.results[at[n]]
			} else {
				batch.Items, places = append(batch.Items, b.items.Batch.Items[place]), append(places, n)
			}
		}
		verdicts, err := e.again.Verdicts(ctx, batch)
		rows := sdk.RowErrors{}
		if err != nil && (!errors.As(err, &rows) || len(verdicts) != len(places)) {
			return err
		}
		for i, n := range places {
			of := b.results[at[n]]
			out[n] = outcome.Result{Line: of.Line, ID: of.ID, Text: of.Text, Expected: of.Expected}
			if rows[i] != nil {
				out[n].Failure = &outcome.Failure{Err: rows[i]}
				continue
			}
			v := verdicts[i]
			out[n].Answer, out[n].Agreement, out[n].Confidence, out[n].Unknown, out[n].Reason = v.Answer, v.Agreement, v.Confidence, v.Unknown, v.Reason
		}
		return ctx.Err()
	})
	return out, err
}

// batchSize is how many items are elected together.
const batchSize = 64

// Election holds the election of a run's items again. It belongs to one goroutine.
type Election struct {
	run   *run.Run
	again *stage.Election
	held  map[ballots]outcome.Result
}

// ballots identifies an item's ballots from the voters that were asked, one bit each.
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
	err := batches(ctx, len(records), func(ctx context.Context, from, to int) error {
		for n, result := range e.again.Elect(ctx, records[from:to]) {
			out[at[from+n]] = result
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for n, key := range keys {
		e.held[key] = out[at[n]]
	}
	return out, nil
}

func (e *Election) record(r outcome.Result) (*stage.Record, error) {
	old := e.run.Record(r.Line)
	if old == nil {
		return nil, errors.New("the item was answered by a run that does not keep ballots")
	}
	return old, nil
}

// batches calls do with parts of n items, some of them at a time.
func batches(ctx context.Context, n int, do func(ctx context.Context, from, to int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += batchSize {
		g.Go(func() error { return do(ctx, from, min(from+batchSize, n)) })
	}
	return g.Wait()
}

// ElectionsWithout holds elections again, once without each voter, batch by batch while a run
// answers the items. It belongs to one goroutine.
type ElectionsWithout struct {
	run    *run.Run
	again  *stage.Election
	voters []string // in file order; none: no election is held again
}

// mostVoters limits the cost: each voter is one more election per item.
const mostVoters = 64

// NewElectionsWithout starts the election stage of p, the pipeline of r, which keeps ballots. A
// pipeline with one voter, or with more than 64, gets no elections.
func NewElectionsWithout(ctx context.Context, r *run.Run, p *pipeline.Pipeline, start stage.Launch) (*ElectionsWithout, error) {
	w := &ElectionsWithout{run: r}
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

// Elect calls each, for every wanted result and voter, with the result without the voter. For an
// unusable row, that is the result itself. It makes the run forget the ballots of all results.
func (w *ElectionsWithout) Elect(ctx context.Context, results []outcome.Result, wanted func(outcome.Result) bool, each func(voter string, answered, without outcome.Result)) error {
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
