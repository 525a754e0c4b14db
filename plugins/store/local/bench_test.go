package local

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// The benchmarks work on 100,000 entries of 384 dimensions and 4 to 28 words,
// which occur as often as words do (Zipf).
const (
	benchRows      = 100_000
	benchDimension = 384
)

type corpus struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newCorpus() corpus {
	r := rand.New(rand.NewPCG(1, 2))
	return corpus{r, rand.NewZipf(r, 1.1, 5, 50_000)}
}

func (c corpus) text(words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "word%d ", c.zipf.Uint64())
	}
	return b.String()
}

func (c corpus) vector() []float32 {
	x := make([]float32, benchDimension)
	for i := range x {
		x[i] = float32(c.r.NormFloat64())
	}
	return x
}

func (c corpus) entries(first, n int) []sdk.Entry {
	batch := make([]sdk.Entry, n)
	for i := range batch {
		batch[i] = sdk.Entry{
			ID: fmt.Sprintf("entry-%07d", first+i), Text: c.text(4 + c.r.IntN(25)),
			Label: fmt.Sprintf("label-%03d", c.r.IntN(150)), Hash: make([]byte, 32), Vector: c.vector(),
		}
	}
	return batch
}

func benchStore(b *testing.B, dir string, rows int) (*store, corpus) {
	b.Helper()
	s, c := openStore(b, dir), newCorpus()
	s.config.Sync = false
	mustOpen(b, s, benchDimension)
	for first := 0; first < rows; first += 1000 {
		must(b, s.Put(ctx, "c", c.entries(first, min(1000, rows-first))))
	}
	must(b, s.Commit(ctx, "c", nil))
	return s, c
}

func BenchmarkSearch(b *testing.B) {
	s, c := benchStore(b, b.TempDir(), benchRows)
	for _, bb := range []struct {
		mode           sdk.Mode
		queries, words int
	}{
		{sdk.ModeDense, 1, 0}, {sdk.ModeDense, 4, 0}, {sdk.ModeDense, 64, 0},
		{sdk.ModeLexical, 1, 3}, {sdk.ModeLexical, 1, 16}, {sdk.ModeLexical, 64, 16},
		{sdk.ModeHybrid, 1, 8}, {sdk.ModeHybrid, 64, 8},
	} {
		queries := make([]sdk.Query, bb.queries)
		for i := range queries {
			queries[i].Text = c.text(bb.words)
			if bb.mode != sdk.ModeLexical {
				queries[i].Vector = c.vector()
			}
		}
		b.Run(fmt.Sprintf("%s/queries=%d/words=%d", bb.mode, bb.queries, bb.words), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(ctx, "c", sdk.Search{Mode: bb.mode, NumCandidates: 60}, queries); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*bb.queries), "µs/query")
		})
	}
}

// BenchmarkSizes is one query of both legs, in collections as people have them.
func BenchmarkSizes(b *testing.B) {
	for _, rows := range []int{2_000, 15_000, benchRows} {
		s, c := benchStore(b, b.TempDir(), rows)
		query := sdk.Query{Text: c.text(8), Vector: c.vector()}
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 60}, []sdk.Query{query}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFilter is one query among a part of the entries.
func BenchmarkFilter(b *testing.B) {
	s, c := benchStore(b, b.TempDir(), benchRows)
	label := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel, Values: []any{"label-007"}}
	filters := map[string]*sdk.Filter{
		"all": nil, "one of 150 labels": label, "all others": {Op: sdk.FilterNot, Parts: []sdk.Filter{*label}},
		"half": {Op: sdk.FilterLess, Field: sdk.FieldLabel, Values: []any{"label-075"}},
		"one":  {Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{"entry-0000777"}},
	}
	for _, name := range slices.Sorted(maps.Keys(filters)) { // so that runs ask the same
		f := filters[name]
		for _, mode := range []sdk.Mode{sdk.ModeDense, sdk.ModeLexical} {
			query := sdk.Query{Text: c.text(8), Vector: c.vector(), Filter: f}
			b.Run(fmt.Sprint(mode, "/", name), func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Search(ctx, "c", sdk.Search{Mode: mode, NumCandidates: 60}, []sdk.Query{query}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, _ := benchStore(b, dir, benchRows)
	s.Close()
	for b.Loop() {
		s := openStore(b, dir)
		mustOpen(b, s, benchDimension)
		s.Close()
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			s, c := openStore(b, b.TempDir()), newCorpus()
			mustOpen(b, s, benchDimension)
			batch := c.entries(0, rows)
			n := 0
			for b.Loop() {
				for i := range batch {
					batch[i].ID = fmt.Sprint(n)
					n++
				}
				must(b, s.Put(ctx, "c", batch))
				must(b, s.Commit(ctx, "c", fmt.Append(nil, n)))
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
