package local

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The benchmarks work on 100,000 entries of 384 dimensions and 4 to 28 words.
const benchRows = 100_000

func newCorpus() apitest.Corpus { return apitest.NewCorpus(4, 28) }

func benchStore(b *testing.B, dir string, rows int) (*store, apitest.Corpus) {
	b.Helper()
	s, c := openStore(b, dir), newCorpus()
	s.config.Sync = false
	mustOpen(b, s, apitest.CorpusDimension)
	for first := 0; first < rows; first += 1000 {
		must.Do(b, s.Put(ctx, "c", c.Entries(first, min(1000, rows-first))))
	}
	must.Do(b, s.Commit(ctx, "c", nil))
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
			queries[i].Text = c.Text(bb.words)
			if bb.mode != sdk.ModeLexical {
				queries[i].Vector = c.Vector()
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
