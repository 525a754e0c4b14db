package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Labels are those of the knowledge that the last retrieve stage searches.
func (r *Run) Labels() []string {
	if r.retrieve < 0 {
		return nil
	}
	return r.knowledge[r.stages[r.retrieve].Retrieve.From].Labels
}

// Again holds the election of answered items again, as if some of their voters
// had not been asked: by the same code, rules included, on the same ballots.
// The items are those of a Run that was opened with Options.Again.
type Again struct {
	run   *Run
	elect *stage
	held  map[election]Result
}

// election is an item with the voters that were asked, a bit each.
type election struct {
	record *record
	asked  uint64
}

// Ask is the question whether a voter is asked about an item.
type Ask struct {
	Item              int // position among the results
	Stage             *pipeline.Stage
	Margin, Agreement float64   // of the votes above it, as its rules see them
	Usage             sdk.Usage // what its samples cost
}

// Again starts the election stage of p, which is r's own pipeline but for the
// values of variables.
func (r *Run) Again(ctx context.Context, p *pipeline.Pipeline, launch Launch) (*Again, error) {
	if r.elect < 0 {
		return nil, errors.New("the pipeline holds no election")
	}
	if len(r.voters) > 64 {
		return nil, fmt.Errorf("the pipeline has %d voters; at most 64 can be told apart here", len(r.voters))
	}
	s := &stage{Stage: p.Stages[r.elect], run: r, index: r.elect, in: r.stages[r.elect].in, ending: newEnding()}
	process, err := launch(ctx, LaunchRequest{Stage: s.Stage})
	if err != nil {
		return nil, err
	}
	return &Again{run: r, elect: s, held: map[election]Result{}}, r.prepare(ctx, s, process, launch)
}

// Elect returns what becomes of items with only those voters that asked agrees
// to, which is called for each item and voter, in file order. Results are
// without votes and candidates. What voters accept was decided when they voted.
func (a *Again) Elect(ctx context.Context, results []Result, asked func(Ask) bool) ([]Result, error) {
	out := make([]Result, len(results))
	var todo []*record
	var keys []election
	var at []int
	for i := range results {
		old := results[i].record
		if old == nil {
			return nil, errors.New("the item was answered by a run that does not keep ballots")
		}
		if old.row.Err != nil {
			out[i] = results[i]
			continue
		}
		rec, key := a.cast(old, i, asked)
		if held, ok := a.held[key]; ok {
			out[i] = held
			continue
		}
		todo, keys, at = append(todo, rec), append(keys, key), append(at, i)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for part := range slices.Chunk(seq(len(todo)), batchSize) {
		g.Go(func() error {
			first, last := part[0], part[len(part)-1]+1
			a.elect.step(ctx, todo[first:last])
			for _, n := range part {
				out[at[n]] = a.result(todo[n])
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for n, key := range keys {
		a.held[key] = out[at[n]]
	}
	return out, nil
}

func seq(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// cast makes a record with the ballots of those that are asked.
func (a *Again) cast(old *record, item int, asked func(Ask) bool) (*record, election) {
	rec := &record{row: old.row, id: old.id, outputs: slices.Clone(old.outputs)}
	rec.outputs[a.elect.index] = output{}
	key := election{record: old}
	var above []sdk.Sample
	for n, v := range a.run.voters {
		ask := Ask{Item: item, Stage: a.run.stages[v].Stage}
		mean := ballot.Mean(above, nil)
		ask.Margin, ask.Agreement = ballot.Margin(mean), ballot.Agreement(mean)
		for _, s := range old.ballots[v] {
			ask.Usage.Add(s.Usage)
		}
		if !asked(ask) {
			rec.outputs[v] = output{}
			continue
		}
		key.asked |= 1 << n
		rec.outputs[v].samples = clone(old.ballots[v])
		above = append(above, rec.outputs[v].samples...)
	}
	return rec, key
}

func (a *Again) result(rec *record) Result {
	r := a.run.result(rec)
	r.Votes, r.Candidates, r.record = nil, nil, nil
	return r
}

// keepBallots keeps what the voters handed in, before the election's own accept
// rule narrows it.
func (r *Run) keepBallots(records []*record) {
	for _, rec := range records {
		rec.ballots = map[int][]sdk.Sample{}
		for _, v := range r.voters {
			rec.ballots[v] = clone(rec.outputs[v].samples)
		}
	}
}

// clone copies samples so far that marks on their answers can differ.
func clone(samples []sdk.Sample) []sdk.Sample {
	all := slices.Clone(samples)
	for i := range all {
		all[i].Answers = slices.Clone(all[i].Answers)
	}
	return all
}
