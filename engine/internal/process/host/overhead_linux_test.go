package host

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkOverhead measures the cost of the process boundary per item in batches of 64. Calls of a
// stage in another process alternate with the same calls in this process, whose time is subtracted.
func BenchmarkOverhead(b *testing.B) {
	const rows, turns = 64, 50
	for _, candidates := range []int{0, 60} {
		b.Run(fmt.Sprintf("candidates=%d", candidates), func(b *testing.B) {
			h, _ := newHost(b)
			p := start(b, h, Spec{})
			batch, here := itemsOf(rows, candidates), &echo{}
			var apart, within time.Duration
			for b.Loop() {
				began := time.Now()
				for range turns {
					if _, err := p.Sample(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				between := time.Now()
				for range turns {
					if _, err := here.Sample(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				apart, within = apart+between.Sub(began), within+time.Since(between)
			}
			b.ReportMetric((apart-within).Seconds()*1e6/float64(b.N*turns*rows), "µs/item")
		})
	}
}
