package packet

import (
	"encoding/binary"
	"math"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// entries are what candidates say of their entries, each once: items find the same ones, and a
// reranker leaves what a search has found.
type entries struct {
	ID      []int `json:"id"`
	Text    []int `json:"text"`
	Label   []int `json:"label"`
	Context []int `json:"context"`
	Meta    []int `json:"meta"`
}

// found are candidates: their entries, and their three scores as they are in memory.
type found struct {
	Entries []int  `json:"entries,omitempty"`
	Scores  []byte `json:"scores,omitempty"`
	// As is the list, from 1, whose candidates these are: those of a result are usually those of
	// its last list.
	As int `json:"as,omitempty"`
}

type list struct {
	Stage int    `json:"stage"`
	Whole bool   `json:"whole,omitempty"`
	Found *found `json:"found,omitempty"`
}

// scores is how many bytes those of a candidate take.
const scores = 12

func (w *writer) entry(c *sdk.Candidate) int {
	key := [5]int{w.text(c.ID), w.text(c.Text), w.text(c.Label), w.text(c.Context), w.meta(c.Meta)}
	n, ok := w.byEntry[key]
	if !ok {
		e := &w.entries
		for i, column := range []*[]int{&e.ID, &e.Text, &e.Label, &e.Context, &e.Meta} {
			*column = append(*column, key[i])
		}
		n = len(e.ID) - 1
		w.byEntry[key] = n
	}
	return n
}

func (w *writer) found(all []sdk.Candidate) *found {
	if all == nil {
		return nil
	}
	out := &found{Entries: make([]int, len(all)), Scores: make([]byte, 0, scores*len(all))}
	for i := range all {
		c := &all[i]
		out.Entries[i] = w.entry(c)
		for _, score := range []float32{c.Score, c.Dense, c.Lexical} {
			out.Scores = binary.LittleEndian.AppendUint32(out.Scores, math.Float32bits(score))
		}
	}
	return out
}

// check looks whether the columns of entries are equally long.
func (r *reader) check() {
	e := &r.entries
	for _, column := range [][]int{e.Text, e.Label, e.Context, e.Meta} {
		if len(column) != len(e.ID) {
			r.fail("columns of entries have %d and %d values", len(e.ID), len(column))
			r.entries = entries{}
			return
		}
	}
}

func (r *reader) found(in *found) []sdk.Candidate {
	if in == nil {
		return nil
	}
	if len(in.Scores) != scores*len(in.Entries) {
		r.fail("%d candidates have %d bytes of scores", len(in.Entries), len(in.Scores))
		return nil
	}
	all, e := make([]sdk.Candidate, len(in.Entries)), &r.entries
	for i, n := range in.Entries {
		if n < 0 || n >= len(e.ID) {
			r.fail("there is no entry %d", n)
			return nil
		}
		c := &all[i]
		*c = sdk.Candidate{ID: r.text(e.ID[n]), Text: r.text(e.Text[n]), Label: r.text(e.Label[n]), Context: r.text(e.Context[n]), Meta: r.meta(e.Meta[n])}
		at := in.Scores[scores*i:]
		for j, score := range []*float32{&c.Score, &c.Dense, &c.Lexical} {
			*score = math.Float32frombits(binary.LittleEndian.Uint32(at[4*j:]))
		}
	}
	return all
}

// lists are those of a result, with its candidates.
func (w *writer) lists(out *item, r *outcome.Result) {
	shared := 0
	out.Lists = each(r.Lists, func(l outcome.List) list { return list{w.text(l.Stage), l.Whole, w.found(l.Candidates)} })
	for i, l := range r.Lists {
		if len(l.Candidates) > 0 && same(l.Candidates, r.Candidates) {
			shared = i + 1
		}
	}
	if shared > 0 {
		out.Candidates = &found{As: shared}
	} else {
		out.Candidates = w.found(r.Candidates)
	}
}

func (r *reader) lists(out *outcome.Result, in *item) {
	out.Lists = each(in.Lists, func(l list) outcome.List {
		return outcome.List{Stage: r.text(l.Stage), Whole: l.Whole, Candidates: r.found(l.Found)}
	})
	switch c := in.Candidates; {
	case c == nil || c.As == 0:
		out.Candidates = r.found(c)
	case c.As < 0 || c.As > len(out.Lists) || len(c.Entries) > 0:
		r.fail("there is no list %d", c.As)
	default:
		out.Candidates = out.Lists[c.As-1].Candidates
	}
}
