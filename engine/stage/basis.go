package stage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash"
	"math"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// Searchable reports whether what is found for items depends on nothing but the knowledge: every
// search can be done before any other stage.
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

// Search does the searches of a batch alone; Run goes on from there. It takes a graph that is
// Searchable, with Options.Basis.
func (g *Graph) Search(ctx context.Context, records []*Record) {
	g.run(ctx, records, func(i int) bool { return g.stages[i].Retrieve != nil })
	for _, rec := range records {
		rec.searched = true
	}
}

// Holds reports, for records that were searched, whether each got from the knowledge what an
// earlier run noted of it.
func (g *Graph) Holds(ctx context.Context, records []*Record, before []outcome.Basis) ([]bool, error) {
	holds := make([]bool, len(records))
	drawn := map[string][]int{} // by stage: records that it drew for
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
	for _, at := range drawn { // of stages that there are no more
		for _, i := range at {
			holds[i] = false
		}
	}
	return holds, nil
}

// basis is what the stages below the searches of an item have seen of the knowledge. It has no
// Found where a search failed.
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

// digestOf tells lists of candidates apart, with their texts where these are shown.
func digestOf(all []sdk.Candidate, shown bool) string {
	h := sha256.New()
	writeCandidates(h, all, shown)
	return short(h)
}

// short is enough of a digest to tell the few apart that are compared.
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
