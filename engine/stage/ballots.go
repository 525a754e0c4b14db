package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// keepBallots keeps what the voters returned, before the election's own accept rule
// narrows it.
func (g *Graph) keepBallots(records []*Record) {
	for _, rec := range records {
		rec.ballots = map[int][]sdk.Sample{}
		for _, v := range g.voters {
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

// Election is the election of a graph, with other values of variables.
type Election struct {
	graph   *Graph
	elect   *stage
	elector sdk.Elector
}

// Election starts the election stage of p, which is the graph's own pipeline but for
// the values of variables.
func (g *Graph) Election(ctx context.Context, p *pipeline.Pipeline, start launch.Func) (*Election, error) {
	if g.elect < 0 {
		return nil, errors.New("the pipeline has no election")
	}
	s := &stage{Stage: p.Stages[g.elect], graph: g, name: g.stages[g.elect].name, index: g.elect, in: g.stages[g.elect].in, ending: newEnding()}
	e := &Election{graph: g, elect: s}
	return e, g.connect(ctx, s, nil, func(ctx context.Context, l launch.Request) (any, error) {
		process, err := start(ctx, l)
		e.elector, _ = process.(sdk.Elector)
		return process, err
	})
}

// Voter is a voter of an election with what it returned about an item.
type Voter struct {
	Stage             *pipeline.Stage
	Margin, Agreement float64   // of the votes above it, as its rules see them
	Usage             sdk.Usage // of its samples
}

var errNoBallots = errors.New("the item was answered by a run that does not keep ballots")

// Record copies an item that was answered, with the ballots of those voters that asked
// agrees to, which is called for each in file order. asks has a bit for each of them.
func (e *Election) Record(old *Record, asked func(Voter) bool) (rec *Record, asks uint64, err error) {
	if old.ballots == nil {
		return nil, 0, errNoBallots
	}
	if len(e.graph.voters) > 64 {
		return nil, 0, fmt.Errorf("the pipeline has %d voters; elections are held again with at most 64", len(e.graph.voters))
	}
	rec = &Record{Row: old.Row, id: old.id, outputs: slices.Clone(old.outputs)}
	rec.outputs[e.elect.index] = output{}
	var above []sdk.Sample
	for n, v := range e.graph.voters {
		voter, mean := Voter{Stage: e.graph.stages[v].Stage}, ballot.Mean(above, nil)
		voter.Margin, voter.Agreement = ballot.Margin(mean), ballot.Agreement(mean)
		for _, s := range old.ballots[v] {
			voter.Usage.Add(s.Usage)
		}
		if !asked(voter) {
			rec.outputs[v] = output{}
			continue
		}
		asks |= 1 << n
		rec.outputs[v].samples = clone(old.ballots[v])
		above = append(above, rec.outputs[v].samples...)
	}
	return rec, asks, nil
}

// Without copies an item that was answered, with the ballots of all voters but one.
func (e *Election) Without(old *Record, voter string) (*Record, error) {
	if old.ballots == nil {
		return nil, errNoBallots
	}
	rec := &Record{Row: old.Row, id: old.id, outputs: slices.Clone(old.outputs)}
	rec.outputs[e.elect.index] = output{}
	for _, v := range e.graph.voters {
		if e.graph.stages[v].Name == voter {
			rec.outputs[v] = output{}
		} else {
			rec.outputs[v].samples = clone(old.ballots[v])
		}
	}
	return rec, nil
}

// Elect holds the election of a batch. Results are without votes and candidates.
func (e *Election) Elect(ctx context.Context, records []*Record) []outcome.Result {
	e.elect.run(ctx, records)
	all := make([]outcome.Result, len(records))
	for i, rec := range records {
		all[i], _ = e.graph.Result(rec)
		all[i].Votes, all[i].Candidates = nil, nil
	}
	return all
}

// Items are answered items as an election gets to see them: what their voters returned,
// narrowed by the accept rules. Elections with other weights can be held over them.
type Items struct {
	Batch sdk.Batch
	// Decided has those for which no election is held, by position: they failed, or its
	// when rule does not hold.
	Decided map[int]outcome.Result
}

// Prepare returns what the election gets to see of a batch. Its rules are evaluated here,
// once; they do not depend on its arguments.
func (e *Election) Prepare(ctx context.Context, records []*Record) Items {
	s := e.elect
	items := Items{Batch: sdk.Batch{Items: make([]sdk.Item, len(records))}, Decided: map[int]outcome.Result{}}
	if s.knowledge != nil && s.Info.Reads.Has(sdk.ColumnLabels) {
		items.Batch.Labels = s.knowledge.Labels
	}
	held := map[*Record]bool{}
	for _, rec := range s.when(ctx, records) {
		held[rec] = true
	}
	for i, rec := range records {
		if held[rec] {
			if err := s.accept(ctx, rec, rec.samples(s.in.voters)); err != nil {
				rec.fail(s, err)
				held[rec] = false
			}
		}
		if held[rec] {
			items.Batch.Items[i] = s.item(rec)
		} else {
			items.Decided[i], _ = e.graph.Result(rec)
		}
	}
	return items
}

// Verdicts holds the election over a batch of items, as it is: neither its fallbacks nor
// its flag rule are looked at.
func (e *Election) Verdicts(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts, err := e.elector.Elect(ctx, b)
	if err == nil && len(verdicts) != len(b.Items) {
		err = fmt.Errorf("%s returned %d results for %d items", e.elect, len(verdicts), len(b.Items))
	}
	return verdicts, err
}
