package minilm

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// BenchmarkEncode reports texts per second on all cores; with -cpu 1 it is texts
// per CPU-second.
func BenchmarkEncode(b *testing.B) {
	m := loadFor(b, modelDir(b), simd.Best())
	sentence := "how do I reset the password of my account on the new router "
	for _, c := range []struct {
		name   string
		copies int
	}{{"short", 1}, {"long", 14}} {
		texts := make([]string, 256/c.copies)
		for i := range texts {
			texts[i] = strings.Repeat(sentence, c.copies)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Encode(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
			b.ReportMetric(float64(len(m.tokenizer.encode(texts[0]))), "tokens/text")
		})
	}
}
