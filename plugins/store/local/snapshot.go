package local

import (
	"slices"
	"sort"
	"sync"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/analyze"
)

// snapshot is a collection at one commit. It does not change: a commit makes
// another one, which shares the segments.
type snapshot struct {
	state
	kernel   *simd.Kernel
	analyzer *analyze.Analyzer // nil: no lexical side
	k1, b    float64

	// parts stand in the order of their sequence numbers, those in files before
	// those in memory.
	parts  []part
	rows   int // removed ones too; a row's number is its part's base and its place there
	living int
	words  int64 // of the living rows

	mu         sync.Mutex
	selections map[string]*selection // of filters asked lately
}

// part is a segment and which of its rows were removed since it was made.
type part struct {
	*segment
	base    int32
	dead    bitmap // nil: none
	removed int
	words   int64    // of the living rows
	gone    []uint32 // by word: removed rows that have it; nil: none
	logged  int64    // in memory: bytes that the living rows take in a log

	ceilings *ceilings // of the snapshot's words
}

func (p *part) living() int { return p.segment.rows - p.removed }

// wholePart is a segment of which nothing was removed.
func wholePart(s *segment) part { return part{segment: s, words: int64(s.image.words)} }

// memoryPart is the same for a segment in memory.
func memoryPart(s *segment) part {
	p := wholePart(s)
	for r := range int32(s.rows) {
		row := s.row(r)
		p.logged += row.size(s.dimension)
	}
	return p
}

// df is the number of living rows that have a word.
func (p *part) df(term int32) int {
	from, to := p.terms.extent(int(term), int(term)+1)
	df := to - from
	if p.gone != nil {
		df -= int(p.gone[term])
	}
	return df
}

// find returns the living row with an id, or -1.
func (p *part) find(hash uint64, id string) int32 {
	if r := p.segment.find(hash, id); r >= 0 && !p.dead.has(r) {
		return r
	}
	return -1
}

// with returns a snapshot of the same collection with other parts. Parts without
// living rows are left out.
func (s *snapshot) with(state state, parts []part) *snapshot {
	next := &snapshot{state: state, kernel: s.kernel, analyzer: s.analyzer, k1: s.k1, b: s.b}
	for _, p := range parts {
		if p.living() == 0 {
			continue
		}
		p.base, p.ceilings = int32(next.rows), new(ceilings)
		next.rows += p.segment.rows
		next.living += p.living()
		next.words += p.words
		next.parts = append(next.parts, p)
	}
	return next
}

// at returns the part that a row is in, and its place there.
func (s *snapshot) at(row int32) (*part, int32) {
	i := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].base > row }) - 1
	return &s.parts[i], row - s.parts[i].base
}

func (s *snapshot) idOf(row int32) string {
	p, r := s.at(row)
	return p.id(r)
}

// find returns the living row with an id.
func (s *snapshot) find(id string) (*part, int32, bool) {
	h := hash(id)
	for i := len(s.parts) - 1; i >= 0; i-- {
		if r := s.parts[i].find(h, id); r >= 0 {
			return &s.parts[i], r, true
		}
	}
	return nil, 0, false
}

// remover takes rows out of parts that others may be reading: it copies what it
// changes.
type remover struct {
	parts    []part
	owned    []bool
	analyzer *analyze.Analyzer
	words    []string
}

func newRemover(parts []part, analyzer *analyze.Analyzer) *remover {
	return &remover{parts: slices.Clone(parts), owned: make([]bool, len(parts)), analyzer: analyzer}
}

// remove takes out the row with an id, if there is one.
func (r *remover) remove(id string) {
	h := hash(id)
	for i := len(r.parts) - 1; i >= 0; i-- {
		if at := r.parts[i].find(h, id); at >= 0 {
			r.removeRow(i, at)
			return
		}
	}
}

func (r *remover) removeRow(number int, at int32) {
	p := &r.parts[number]
	if !r.owned[number] {
		r.owned[number] = true
		p.dead, p.gone = slices.Clone(p.dead), slices.Clone(p.gone)
		if p.dead == nil {
			p.dead = newBitmap(p.segment.rows)
		}
		if p.gone == nil && r.analyzer != nil {
			p.gone = make([]uint32, p.terms.len())
		}
	}
	p.dead.set(at)
	p.removed++
	row := p.row(at)
	if p.path == "" {
		p.logged -= row.size(p.dimension)
	}
	if r.analyzer == nil {
		return
	}
	r.words = appendWords(r.words[:0], *r.analyzer, row.context, row.text)
	p.words -= int64(p.lengths[at])
	slices.Sort(r.words)
	for _, w := range slices.Compact(r.words) {
		if term := p.terms.find(hash(w), w); term >= 0 {
			p.gone[term]++
		}
	}
}
