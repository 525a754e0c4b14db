package run_test

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
)

// BenchmarkItems takes 2,000 items at a time through statistical voters over a small knowledge:
// this measures the overhead of the engine and the wire.
func BenchmarkItems(b *testing.B) {
	r := runtest.Pipeline(b, runtest.Stages(), `
		retrieve "near" { from = knowledge.k }
		sample "knn" { use = "neighbours" }
		sample "proto" { use = "prototype" }
		elect "e" { use = "soft" }`)
	const items = 2000
	texts := make([]string, items)
	for i := range texts {
		texts[i] = fmt.Sprintf("a green apple in car %d", i)
	}
	for b.Loop() {
		totals, err := r.Items(b.Context(), runtest.Feed(texts...), nil, func([]outcome.Result) error { return nil })
		if err != nil || totals.Answered != items {
			b.Fatal(totals, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items/1e3, "µs/item")
}
