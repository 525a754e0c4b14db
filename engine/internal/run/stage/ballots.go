package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// keepBallots keeps the voters' samples before the election's own accept rule narrows them.
func (g *Graph) keepBallots(records []*Record) {
	for _, rec := range records {
		rec.ballots = map[int][]sdk.Sample{}
		for _, v := range g.voters {
			rec.ballots[v] = clone(rec.outputs[v].samples)
		}
	}
}

// clone copies samples so that the answers of a copy can be marked separately.
func clone(samples []sdk.Sample) []sdk.Sample {
	all := slices.Clone(samples)
	for i := range all {
		all[i].Answers = slices.Clone(all[i].Answers)
	}
	return all
}

// Election is a graph's election with other values of variables.
type Election struct {
	graph *Graph
	elect *stage
}

// Election starts the election stage of p, the graph's own pipeline with other values of variables.
func (g *Graph) Election(ctx context.Context, p *pipeline.Pipeline, start Launch) (*Election, error) {
	if g.elect < 0 {
		return nil, errors.New("the pipeline has no election")
	}
	s := &stage{Stage: p.Stages[g.elect], graph: g, name: g.stages[g.elect].name, index: g.elect, in: g.stages[g.elect].in, ending: newEnding()}
	return &Election{graph: g, elect: s}, g.connect(ctx, s, nil, start)
}

// Voter is a voter of an election, with figures of the voter's ballot for an item.
type Voter struct {
	Stage             *pipeline.Stage
	Margin, Agreement float64   // of the votes of earlier voters, as the voter's rules see them
	Usage             sdk.Usage // of its samples
}

var errNoBallots = errors.New("the item was answered by a run that does not keep ballots")

// Record copies an answered item with the ballots of the voters for which asked returns true. asked
// is called in file order. asks has a bit for each of these voters.
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
		voter := Voter{Stage: e.graph.stages[v].Stage}
		voter.Margin, voter.Agreement = margin(e.graph.form, above)
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

// Elect holds the election for a batch. Its results have no votes and candidates.
func (e *Election) Elect(ctx context.Context, records []*Record) []outcome.Result {
	e.elect.run(ctx, records)
	all := make([]outcome.Result, len(records))
	for i, rec := range records {
		all[i], _ = e.graph.Result(rec)
		all[i].Votes, all[i].Candidates = nil, nil
	}
	return all
}

// Samples returns the samples that the election has read of a record: the voters' samples, without answers
// that the accept rules refuse.
func (e *Election) Samples(rec *Record) []sdk.Sample { return rec.samples(e.elect.in.voters) }
