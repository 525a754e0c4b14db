package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// TestPruningFindsTheSame compares pruning with scoring every row, with frequent
// and rare words, removed rows, selections, and rows of the other side.
func TestPruningFindsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.2, 2, 3000)
	text := func(words int) (s string) {
		for range words {
			s += fmt.Sprintf("w%d ", zipf.Uint64())
		}
		return s
	}
	s := openStore(t, t.TempDir())
	mustOpen(t, s, 2)
	entries := make([]sdk.Entry, 3*windowRows+100)
	for i := range entries {
		entries[i] = sdk.Entry{ID: fmt.Sprint(i), Text: text(1 + r.IntN(30)), Vector: []float32{1, 0}}
	}
	var gone []string
	for i := range entries {
		if i%7 == 0 {
			gone = append(gone, entries[i].ID)
		}
	}
	for _, err := range []error{s.Put(ctx, "c", entries), s.Commit(ctx, "c", nil), s.Delete(ctx, "c", gone), s.Commit(ctx, "c", nil)} {
		must(t, err)
	}
	now := s.collection("c").now.Load()
	if len(now.parts) == 0 || now.living == now.rows {
		t.Fatalf("%d parts, %d of %d rows live", len(now.parts), now.living, now.rows)
	}
	skipped := 0
	for try := range 200 {
		query, depth := text(1+r.IntN(20)), []int{1, 10, 240}[r.IntN(3)]
		others := make([]scored, r.IntN(50))
		for i := range others {
			others[i].row = int32(r.IntN(now.rows))
		}
		slices.SortFunc(others, func(a, b scored) int { return int(a.row - b.row) })
		var among bitmap
		if try%3 == 0 {
			among = newBitmap(now.rows)
			for row := range int32(now.rows) {
				if r.IntN(4) > 0 {
					among.set(row)
				}
			}
		}
		search := func(do func(*lexical, *part, bitmap, []scored)) ([]scored, []scored) {
			l, mine := new(lexical), slices.Clone(others)
			if !l.prepare(now, query) {
				return nil, mine
			}
			l.best, l.floor = top{of: now, depth: depth}, 1e-30
			for i := range now.parts {
				p := &now.parts[i]
				if !l.lookUp(i) {
					continue
				}
				in := mine
				in = in[slices.IndexFunc(append(in, scored{row: 1 << 30}), func(o scored) bool { return o.row >= p.base }):]
				in = in[:slices.IndexFunc(append(in, scored{row: 1 << 30}), func(o scored) bool { return o.row >= p.base+int32(p.segment.rows) })]
				do(l, p, among.from(p), in)
				if len(l.rest) > 0 && l.essential() < len(l.lists) {
					skipped++
				}
			}
			return l.best.sorted(), mine
		}
		want, wantOthers := search((*lexical).scan)
		got, gotOthers := search((*lexical).prune)
		if !slices.Equal(got, want) || !slices.Equal(gotOthers, wantOthers) {
			t.Fatalf("query %q, depth %d: pruned %v\nwant %v\nothers %v\nwant %v", query, depth, got, want, gotOthers, wantOthers)
		}
	}
	if skipped == 0 {
		t.Error("no query left a word out")
	}
}

// from is the bits of a part's rows; nil stays nil.
func (b bitmap) from(p *part) bitmap {
	if b == nil {
		return nil
	}
	mine := newBitmap(p.segment.rows)
	for r := range int32(p.segment.rows) {
		if b.has(p.base + r) {
			mine.set(r)
		}
	}
	return mine
}
