package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
)

// TestPruningFindsTheSame compares pruning with scoring every row, to the bit, with
// frequent and rare words, removed rows, selections, rows of the other leg, and
// windows of several sizes.
func TestPruningFindsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.2, 2, 3000)
	text := func(words int) (s string) {
		for range words {
			s += fmt.Sprintf("w%d ", zipf.Uint64())
		}
		return s
	}
	empty, err := segment.EmptySnapshot(sdk.Schema{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	changes := segment.NewStaged(nil, empty.Analyzer)
	put := &segment.Batch{Rows: make([]segment.Row, 25_000)}
	var gone []string
	for i := range put.Rows {
		put.Rows[i] = segment.Row{Sequence: uint64(i), ID: fmt.Sprint(i), Text: text(1 + r.IntN(30))}
		if i%7 == 0 {
			gone = append(gone, put.Rows[i].ID)
		}
	}
	for _, often := range []string{"w0 ", "w1 ", "w40 ", "w900 "} { // counts that do not fit a byte
		put.Rows[r.IntN(len(put.Rows))].Text = strings.Repeat(often, 300)
	}
	changes.Apply(segment.Change{Put: put})
	parts, err := empty.Append(nil, &changes.Rows)
	if err != nil {
		t.Fatal(err)
	}
	changes = segment.NewStaged(parts, empty.Analyzer)
	changes.Apply(segment.Change{Delete: gone})
	now := empty.With(changes.Parts.Parts)
	legs := []*LexicalLeg{NewLexicalLeg(now, 1.2, 0.75), NewLexicalLeg(now, 0, 0), NewLexicalLeg(now, 2, 1)}
	if len(now.Parts) == 0 || now.Live == now.Rows {
		t.Fatalf("%d parts, %d of %d rows live", len(now.Parts), now.Live, now.Rows)
	}
	if many := slices.Index(now.Parts[0].Terms.Counts, segment.ManyRows); many < 0 {
		t.Fatal("no large count")
	}
	skipped, ranked, raised := 0, 0, 0
	for try := range 400 {
		query, depth := text(1+r.IntN(20)), []int{1, 10, 240}[r.IntN(3)]
		others := make([]Scored, r.IntN(50)*r.IntN(2))
		for i := range others {
			others[i].Row = int32(r.IntN(now.Rows))
		}
		slices.SortFunc(others, func(a, b Scored) int { return int(a.Row - b.Row) })
		var among segment.RowSet
		if try%3 == 0 {
			among = segment.NewRowSet(now.Rows)
			for row := range int32(now.Rows) {
				if r.IntN(4) > 0 {
					among.Add(row)
				}
			}
		}
		search := func(do func(*lexical, int, segment.RowSet, []Scored)) ([]Scored, []Scored) {
			l, mine := &lexical{rows: []int{1000, 8192, windowRows, 8192}[try%4]}, slices.Clone(others)
			if !l.prepare(legs[try%len(legs)], query) {
				return nil, mine
			}
			l.best, l.floor = Top{Of: now, Depth: depth}, 1e-30
			for i := range now.Parts {
				p := &now.Parts[i]
				if !l.lookUp(i) {
					continue
				}
				in := mine
				in = in[slices.IndexFunc(append(in, Scored{Row: 1 << 30}), func(o Scored) bool { return o.Row >= p.Base }):]
				in = in[:slices.IndexFunc(append(in, Scored{Row: 1 << 30}), func(o Scored) bool { return o.Row >= p.Base+int32(p.Segment.Rows) })]
				do(l, i, rowsOf(among, p), in)
			}
			return l.best.Sorted(), mine
		}
		want, wantOthers := search(everyRow)
		got, gotOthers := search(func(l *lexical, i int, among segment.RowSet, others []Scored) {
			l.score(&l.of.Parts[i], &l.most[i], among, others)
			for n, list := range l.lists {
				if l.rest[n] < l.floor {
					skipped++
				}
				if list.ranks != nil {
					ranked++
				}
			}
			raised += len(l.certain.Heap)
			if i := slices.IndexFunc(l.sums[:], func(sum float32) bool { return sum != 0 }); i >= 0 {
				t.Fatalf("query %q leaves a sum at %d", query, i)
			}
		})
		if !slices.Equal(got, want) || !slices.Equal(gotOthers, wantOthers) {
			t.Fatalf("query %q, depth %d: pruned %v\nwant %v\nothers %v\nwant %v", query, depth, got, want, gotOthers, wantOthers)
		}
	}
	if skipped == 0 || ranked == 0 || raised == 0 {
		t.Errorf("%d words left out, %d looked up by ranks, %d rows raise the floor; want some of each", skipped, ranked, raised)
	}
}

// everyRow scores every row of a part by all of the lists.
func everyRow(l *lexical, part int, among segment.RowSet, others []Scored) {
	p := &l.of.Parts[part]
	sums := make([]float32, p.Segment.Rows)
	for i := range l.lists {
		for j, r := range l.lists[i].rows {
			sums[r] += float32(l.lists[i].weight * l.share(l.lists[i].tf(j), p.Lengths[r]))
		}
	}
	for r, sum := range sums {
		if sum > 0 && alive(p, among, int32(r)) {
			l.best.Offer(Scored{Score: sum, Row: p.Base + int32(r)})
		}
	}
	for i := range others {
		others[i].Score = sums[others[i].Row-p.Base]
	}
}

// rowsOf is the set of a part's rows; nil stays nil.
func rowsOf(b segment.RowSet, p *segment.Part) segment.RowSet {
	if b == nil {
		return nil
	}
	mine := segment.NewRowSet(p.Segment.Rows)
	for r := range int32(p.Segment.Rows) {
		if b.Has(p.Base + r) {
			mine.Add(r)
		}
	}
	return mine
}
