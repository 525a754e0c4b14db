package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

// BenchmarkHop is the price of the boundary: a batch of 256 items to a stage
// in another process that does next to nothing, and its results back. The aim
// is at most 5 µs per item and hop.
func BenchmarkHop(b *testing.B) {
	const rows = 256
	text := strings.Repeat("x", 200)
	for _, c := range []struct {
		name       string
		candidates int
	}{{"text of 200 B", 0}, {"and 60 candidates", 60}} {
		b.Run(c.name, func(b *testing.B) {
			h, _ := newHost(b)
			p := start(b, h, Spec{})
			batch := sdk.Batch{Items: make([]sdk.Item, rows)}
			for i := range batch.Items {
				it := sdk.Item{ID: fmt.Sprint("item-", i), Text: text, Candidates: make([]sdk.Candidate, c.candidates)}
				for j := range it.Candidates {
					it.Candidates[j] = sdk.Candidate{
						ID: fmt.Sprintf("entry-%06d", i*j), Label: fmt.Sprint("label-", j%25), Score: .5, Dense: .5, Lexical: 3,
					}
				}
				batch.Items[i] = it
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Sample(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows/1e3, "µs/item")
		})
	}
}

// BenchmarkHopsInParallel keeps several batches in flight, as a run does.
func BenchmarkHopsInParallel(b *testing.B) {
	const rows = 256
	h, _ := newHost(b)
	p := start(b, h, Spec{})
	batch := sdk.Batch{Items: make([]sdk.Item, rows)}
	for i := range batch.Items {
		batch.Items[i] = sdk.Item{ID: fmt.Sprint("item-", i), Text: strings.Repeat("x", 200)}
	}
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := p.Sample(b.Context(), batch); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows/1e3, "µs/item")
}

// BenchmarkSingle is one small record there and back.
func BenchmarkSingle(b *testing.B) {
	h, _ := newHost(b)
	p := start(b, h, Spec{})
	batch := say(strings.Repeat("x", 200))
	for b.Loop() {
		if _, err := p.Sample(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is one process from nothing to configured.
func BenchmarkStart(b *testing.B) {
	h, _ := newHost(b)
	for b.Loop() {
		begin := time.Now()
		p := start(b, h, Spec{})
		b.ReportMetric(float64(time.Since(begin).Microseconds())/1e3, "ms/start")
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
