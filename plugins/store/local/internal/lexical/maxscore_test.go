package lexical

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/topk"
	"github.com/racflow/racflow/sdk"
)

// TestPruningFindsTheSame compares pruning with scoring every row, with frequent
// and rare words, removed rows, selections, and rows of the other leg.
func TestPruningFindsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.2, 2, 3000)
	text := func(words int) (s string) {
		for range words {
			s += fmt.Sprintf("w%d ", zipf.Uint64())
		}
		return s
	}
	empty, err := snapshot.Empty(sdk.Schema{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	changes := snapshot.NewStaged(nil, empty.Analyzer)
	put := &row.Batch{Rows: make([]row.Row, 3*windowRows+100)}
	var gone []string
	for i := range put.Rows {
		put.Rows[i] = row.Row{Sequence: uint64(i), ID: fmt.Sprint(i), Text: text(1 + r.IntN(30))}
		if i%7 == 0 {
			gone = append(gone, put.Rows[i].ID)
		}
	}
	changes.Apply(row.Change{Put: put})
	parts, err := empty.Append(nil, &changes.Rows)
	if err != nil {
		t.Fatal(err)
	}
	changes = snapshot.NewStaged(parts, empty.Analyzer)
	changes.Apply(row.Change{Delete: gone})
	now := empty.With(changes.Parts.Parts)
	leg := NewLeg(now, 1.2, 0.75)
	if len(now.Parts) == 0 || now.Live == now.Rows {
		t.Fatalf("%d parts, %d of %d rows live", len(now.Parts), now.Live, now.Rows)
	}
	skipped := 0
	for try := range 200 {
		query, depth := text(1+r.IntN(20)), []int{1, 10, 240}[r.IntN(3)]
		others := make([]topk.Scored, r.IntN(50))
		for i := range others {
			others[i].Row = int32(r.IntN(now.Rows))
		}
		slices.SortFunc(others, func(a, b topk.Scored) int { return int(a.Row - b.Row) })
		var among row.Set
		if try%3 == 0 {
			among = row.NewSet(now.Rows)
			for row := range int32(now.Rows) {
				if r.IntN(4) > 0 {
					among.Add(row)
				}
			}
		}
		search := func(do func(*lexical, int, row.Set, []topk.Scored)) ([]topk.Scored, []topk.Scored) {
			l, mine := new(lexical), slices.Clone(others)
			if !l.prepare(leg, query) {
				return nil, mine
			}
			l.best, l.floor = topk.Top{Of: now, Depth: depth}, 1e-30
			for i := range now.Parts {
				p := &now.Parts[i]
				if !l.lookUp(i) {
					continue
				}
				in := mine
				in = in[slices.IndexFunc(append(in, topk.Scored{Row: 1 << 30}), func(o topk.Scored) bool { return o.Row >= p.Base }):]
				in = in[:slices.IndexFunc(append(in, topk.Scored{Row: 1 << 30}), func(o topk.Scored) bool { return o.Row >= p.Base+int32(p.Segment.Rows) })]
				do(l, i, rowsOf(among, p), in)
				if len(l.rest) > 0 && l.essential() < len(l.lists) {
					skipped++
				}
			}
			return l.best.Sorted(), mine
		}
		want, wantOthers := search(func(l *lexical, i int, among row.Set, others []topk.Scored) { l.scan(&l.of.Parts[i], among, others) })
		got, gotOthers := search(func(l *lexical, i int, among row.Set, others []topk.Scored) {
			l.prune(&l.of.Parts[i], &l.most[i], among, others)
		})
		if !slices.Equal(got, want) || !slices.Equal(gotOthers, wantOthers) {
			t.Fatalf("query %q, depth %d: pruned %v\nwant %v\nothers %v\nwant %v", query, depth, got, want, gotOthers, wantOthers)
		}
	}
	if skipped == 0 {
		t.Error("no query left a word out")
	}
}

// rowsOf is the set of a part's rows; nil stays nil.
func rowsOf(b row.Set, p *snapshot.Part) row.Set {
	if b == nil {
		return nil
	}
	mine := row.NewSet(p.Segment.Rows)
	for r := range int32(p.Segment.Rows) {
		if b.Has(p.Base + r) {
			mine.Add(r)
		}
	}
	return mine
}
