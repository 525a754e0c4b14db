package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestPruningFindsTheSame compares pruning with scoring every row, to the bit. It covers frequent and rare words,
// removed rows, selections of many and of few rows, and rows of the other leg.
func TestPruningFindsTheSame(t *testing.T) {
	must.NoRace(t)
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
	for _, often := range []string{"w0 ", "w1 ", "w40 ", "w900 "} { // counts that do not fit into a byte
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
	legs := []*LexicalLeg{newLexicalLeg(now, 1.2, 0.75), newLexicalLeg(now, 0, 0), newLexicalLeg(now, 2, 1)}
	if len(now.Parts) == 0 || now.Live == now.Rows {
		t.Fatalf("%d parts, %d of %d rows live", len(now.Parts), now.Live, now.Rows)
	}
	if many := slices.Index(now.Parts[0].Terms.Counts, segment.ManyRows); many < 0 {
		t.Fatal("no large count")
	}
	skipped, ranked, raised, few := 0, 0, 0, 0
	for try := range 400 {
		query, depth := text(1+r.IntN(20)), []int{1, 10, 240}[r.IntN(3)]
		others := make([]scored, r.IntN(50)*r.IntN(2))
		for i := range others {
			others[i].Row = int32(r.IntN(now.Rows))
		}
		slices.SortFunc(others, func(a, b scored) int { return int(a.Row - b.Row) })
		var among selection
		if try%3 == 0 {
			every := []int{2, 500}[r.IntN(2)]
			for i := range now.Parts {
				p := &now.Parts[i]
				among = append(among, segment.NewRowSet(p.Segment.Rows))
				for row := range p.LiveRows() {
					if r.IntN(every) == 0 {
						among[i].Add(row)
					}
				}
			}
		}
		leg, wantOthers := legs[try%len(legs)], slices.Clone(others)
		want := everyRow(leg, query, among, depth, wantOthers)
		got := leg.Search(query, among, depth, others)
		if !slices.Equal(got, want) || !slices.Equal(others, wantOthers) {
			t.Fatalf("query %q, depth %d: pruned %v\nwant %v\nothers %v\nwant %v", query, depth, got, want, others, wantOthers)
		}
		s := &scoring{LexicalLeg: leg, part: &now.Parts[0], best: top{Of: now, Depth: depth}, floor: 1e-30, sums: make([]float32, now.Rows)}
		if among != nil {
			s.among = among[0]
		}
		s.lookUp(leg.words(query), 0, len(others))
		skipped += len(s.lists) - s.walk()
		raised += len(s.certain.Heap)
		if s.few {
			few++
		}
		if slices.ContainsFunc(s.lists, func(l list) bool { return l.ranks != nil }) {
			ranked++
		}
	}
	if skipped == 0 || ranked == 0 || raised == 0 || few == 0 {
		t.Errorf("%d words left out, %d queries with ranks, %d rows raise the floor, %d queries look few rows up; want some of each",
			skipped, ranked, raised, few)
	}
}

// everyRow scores every row with all lists.
func everyRow(leg *LexicalLeg, query string, among selection, depth int, others []scored) []scored {
	best, sums := top{Of: leg.of, Depth: depth}, make([]float32, leg.of.Rows)
	for _, w := range leg.words(query) {
		for i := range leg.of.Parts {
			p := &leg.of.Parts[i]
			if w.terms[i] < 0 {
				continue
			}
			p.Terms.Each(int(w.terms[i]), func(row, count uint32) {
				sums[p.Base+int32(row)] += float32(w.weight * leg.share(float32(count), p.Lengths[row]))
			})
		}
	}
	for i := range leg.of.Parts {
		p := &leg.of.Parts[i]
		for row := range p.LiveRows() {
			if sum := sums[p.Base+row]; sum > 0 && (among == nil || among[i].Has(row)) {
				best.offer(scored{Score: sum, Row: p.Base + row})
			}
		}
	}
	for i := range others {
		others[i].Score = sums[others[i].Row]
	}
	return best.sorted()
}

func TestRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{1, 63, 64, 65, 1000} {
		for _, share := range []float64{0.05, 0.5, 1} {
			var list []uint32
			for row := range uint32(rows) {
				if r.Float64() < share {
					list = append(list, row)
				}
			}
			ranks := newRanks(list, rows)
			for row := range uint32(rows) {
				at, ok := ranks.find(row)
				if want, found := slices.BinarySearch(list, row); at != want || ok != found {
					t.Fatalf("%d of %d rows: row %d at %d, %v; want %d, %v", len(list), rows, row, at, ok, want, found)
				}
			}
		}
	}
}

// TestRanksOfDamagedLists has rows out of range or out of order.
func TestRanksOfDamagedLists(t *testing.T) {
	ranks := newRanks([]uint32{70, 3, 3, 1 << 31, 100}, 100)
	for row := range uint32(100) {
		if at, ok := ranks.find(row); at > 5 || ok != (row == 3 || row == 70) {
			t.Errorf("row %d at %d, %v", row, at, ok)
		}
	}
}
