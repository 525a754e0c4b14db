package reelect

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/stage"
)

// batchSize is how many items are elected together.
const batchSize = 64

// Election holds the election of a run's items again. It belongs to one goroutine.
type Election struct {
	run   *run.Run
	again *stage.Election
	held  map[ballots]outcome.Result
}

// ballots are an item's, of the voters that were asked: a bit each.
type ballots struct {
	record *stage.Record
	asked  uint64
}

// Ask is the question whether a voter is asked about an item.
type Ask struct {
	Item int // position among the results
	stage.Voter
}

// New starts the election stage of p, which is the pipeline of r but for the values of
// variables. r keeps ballots (stage.Options.Ballots).
func New(ctx context.Context, r *run.Run, p *pipeline.Pipeline, start launch.Func) (*Election, error) {
	again, err := r.Graph().Election(ctx, p, start)
	return &Election{r, again, map[ballots]outcome.Result{}}, err
}

// Elect returns what becomes of items with only those voters that asked agrees to,
// which is called for each item and voter, in file order. Results are without votes and
// candidates. Which answers of a voter are accepted was decided when it voted.
func (e *Election) Elect(ctx context.Context, results []outcome.Result, asked func(Ask) bool) ([]outcome.Result, error) {
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
		rec, asks, err := e.again.Record(old, func(v stage.Voter) bool { return asked(Ask{i, v}) })
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
