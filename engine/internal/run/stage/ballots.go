package stage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
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

// clone copies samples deeply enough for separate marks on their answers.
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

// Voter is a voter of an election, with figures of its ballot for an item.
type Voter struct {
	Stage             *pipeline.Stage
	Margin, Agreement float64   // of the votes of earlier voters, as its rules see them
	Usage             sdk.Usage // of its samples
}

var errNoBallots = errors.New("the item was answered by a run that does not keep ballots")

// Record copies an answered item with the ballots of some voters: those for which asked, called in
// file order, returns true. asks has a bit for each of them.
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

// Samples returns what the election has read of a record: its voters' samples, narrowed by the accept rules.
func (e *Election) Samples(rec *Record) []sdk.Sample { return rec.samples(e.elect.in.voters) }

// Searchable reports whether search results depend only on the knowledge: all searches can then
// precede the other stages.
func (g *Graph) Searchable() bool {
	for _, s := range g.stages {
		if s == nil || s.Retrieve == nil {
			continue
		}
		for _, n := range s.in.needs {
			if above := g.stages[n]; above != nil && above.Retrieve == nil {
				return false
			}
		}
	}
	return g.retrieve >= 0
}

// Search does only the searches of a batch; Run continues from there. The graph must be Searchable,
// with Options.Basis.
func (g *Graph) Search(ctx context.Context, records []*Record) {
	g.run(ctx, records, func(i int) bool { return g.stages[i].Retrieve != nil })
	for _, rec := range records {
		rec.searched = true
	}
}

// Holds reports, for searched records, whether each got from the knowledge what an earlier run
// recorded (before).
func (g *Graph) Holds(ctx context.Context, records []*Record, before []outcome.Basis) ([]bool, error) {
	holds := make([]bool, len(records))
	drawn := map[string][]int{} // by stage: indexes of records that it drew examples for
	for i, rec := range records {
		holds[i] = before[i].Found != "" && g.basis(rec).Found == before[i].Found
		for stage := range before[i].Drawn {
			if holds[i] {
				drawn[stage] = append(drawn[stage], i)
			}
		}
	}
	for _, s := range g.stages {
		if s == nil || len(drawn[s.String()]) == 0 {
			continue
		}
		at := drawn[s.String()]
		delete(drawn, s.String())
		some := make([]*Record, len(at))
		for n, i := range at {
			some[n] = records[i]
		}
		draws, err := s.draw(ctx, some)
		if err != nil {
			return nil, err
		}
		for n, i := range at {
			holds[i] = holds[i] && draws != nil && digestOf(draws[n], true) == before[i].Drawn[s.String()]
		}
	}
	for _, at := range drawn { // of stages that no longer exist
		for _, i := range at {
			holds[i] = false
		}
	}
	return holds, nil
}

// basis returns a fingerprint of what the stages below the searches saw of the knowledge. Found is
// empty if a search failed.
func (g *Graph) basis(rec *Record) outcome.Basis {
	var b outcome.Basis
	all := sha256.New()
	for i, s := range g.stages {
		if s == nil {
			continue
		}
		out := &rec.outputs[i]
		if out.drawn != "" {
			if b.Drawn == nil {
				b.Drawn = map[string]string{}
			}
			b.Drawn[s.String()] = out.drawn
		}
		if s.Retrieve == nil {
			continue
		}
		if out.failure != nil || out.skipped != nil || out.missing != nil {
			return outcome.Basis{}
		}
		all.Write([]byte(s.String()))
		if s.whole != nil && len(out.candidates) > 0 {
			s.whole.once.Do(func() { s.whole.digest = digestOf(s.whole.candidates, true) })
			all.Write([]byte(s.whole.digest))
		} else {
			writeCandidates(all, out.candidates, s.shown)
		}
		writeCandidates(all, out.prototypes, false)
	}
	b.Found = short(all)
	return b
}

// digestOf identifies a list of candidates, with their texts if shown.
func digestOf(all []sdk.Candidate, shown bool) string {
	h := sha256.New()
	writeCandidates(h, all, shown)
	return short(h)
}

// short shortens a digest; few digests are compared, so they stay distinct.
func short(h hash.Hash) string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12]) }

// writeCandidates adds candidates to a digest, each part with its length.
func writeCandidates(h hash.Hash, all []sdk.Candidate, shown bool) {
	b := binary.AppendUvarint(nil, uint64(len(all)))
	text := func(t string) { b = append(binary.AppendUvarint(b, uint64(len(t))), t...) }
	for i := range all {
		c := &all[i]
		text(c.ID)
		text(c.Label)
		for _, score := range []float32{c.Score, c.Dense, c.Lexical} {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(score))
		}
		if shown {
			text(c.Text)
			text(c.Context)
			meta, err := json.Marshal(c.Meta)
			if err != nil {
				panic(err) // strings, numbers and booleans always encode
			}
			text(string(meta))
		}
	}
	h.Write(b)
}
