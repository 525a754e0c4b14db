package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// itemsOf returns items as a run sends them.
func itemsOf(rows, candidates int) sdk.Batch {
	text := strings.Repeat("x", 200)
	batch := sdk.Batch{Items: make([]sdk.Item, rows)}
	for i := range batch.Items {
		it := sdk.Item{ID: fmt.Sprint("item-", i), Text: text, Candidates: make([]sdk.Candidate, candidates)}
		for j := range it.Candidates {
			it.Candidates[j] = sdk.Candidate{
				ID: fmt.Sprintf("entry-%06d", i*j), Label: fmt.Sprint("label-", j%25), Score: .5, Dense: .5, Lexical: 3,
			}
		}
		batch.Items[i] = it
	}
	return batch
}

// BenchmarkHop measures the cost of the process boundary: batches of items go to a stage in another
// process that does almost nothing, and its results come back. It sends one batch at a time, and
// several in flight as in a run. The goal is at most 5 µs per item and hop.
func BenchmarkHop(b *testing.B) {
	for _, c := range []struct {
		rows, candidates, inFlight int
	}{{64, 0, 1}, {64, 0, 4}, {64, 60, 1}, {64, 60, 4}, {256, 0, 1}, {256, 0, 4}, {256, 60, 1}, {256, 60, 4}} {
		b.Run(fmt.Sprintf("rows=%d/candidates=%d/batches=%d", c.rows, c.candidates, c.inFlight), func(b *testing.B) {
			h, _ := newHost(b)
			p := start(b, h, Spec{})
			batch := itemsOf(c.rows, c.candidates)
			work := make(chan struct{})
			var workers errgroup.Group
			for range c.inFlight {
				workers.Go(func() error {
					for range work {
						if _, err := p.Sample(b.Context(), batch); err != nil {
							b.Error(err)
						}
					}
					return nil
				})
			}
			b.ResetTimer()
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			_ = workers.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.rows)/1e3, "µs/item")
		})
	}
}

// BenchmarkSingle sends one small record there and back.
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

// BenchmarkStart starts and configures one process.
func BenchmarkStart(b *testing.B) {
	h, _ := newHost(b)
	for b.Loop() {
		begin := time.Now()
		p := start(b, h, Spec{})
		b.ReportMetric(float64(time.Since(begin).Microseconds())/1e3, "ms/start")
		must.Do(b, p.Close())
	}
}
