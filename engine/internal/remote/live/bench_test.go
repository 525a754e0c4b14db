package live

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// neighbours is the kNN path: an embedder, a search and a vote.
const neighbours = `
knowledge "k" {
  source { path = "%s" }
  embed { use = "%s" }
  store { use = "local" }
}
pipeline "knn" {
  retrieve "near" {
    from  = knowledge.k
    top_k = 60
  }
  sample "vote" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`

// embedder is what the benchmarks work with: minilm, or what RACFLOW_BENCH_EMBEDDER names.
func embedder() string {
	if name := os.Getenv("RACFLOW_BENCH_EMBEDDER"); name != "" {
		return name
	}
	return "minilm"
}

// warm opens the kNN path over the example's rows, and reads the example's items.
func warm(b *testing.B) (*Pipeline, []source.Row) {
	b.Helper()
	examples := must.Get(filepath.Abs("../../../../examples/intent"))(b)
	dir, o := folder(b, map[string]string{"p.hcl": fmt.Sprintf(neighbours, filepath.Join(examples, "train.tsv"), embedder())})
	s := must.Get(Open(context.Background(), []string{filepath.Join(dir, "p.hcl")}, o))(b)
	b.Cleanup(s.Close)
	if err := s.Start(b.Context()); err != nil {
		b.Skipf("the pipeline does not start: %v", err)
	}
	in, err := source.Open(filepath.Join(examples, "test.tsv"), source.Form{}, source.Mapping{ID: "id", Text: "text", Label: "label"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	var rows []source.Row
	for {
		row, err := in.Next()
		if err == io.EOF {
			return s.Pipeline("knn"), rows
		}
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// BenchmarkCallers compares 64 callers, each with one item at a time, with a batch run over the same
// items in the same processes, in turns. It reports the callers' share of the run's rate with its
// standard error, the times of single requests under that load, and one with nobody else.
//
//	go test -run - -bench Callers -benchtime 20x ./engine/internal/remote/live
func BenchmarkCallers(b *testing.B) {
	const callers, passes = 64, 8
	p, rows := warm(b)
	n := len(rows) * passes
	batch := func() time.Duration {
		start, next := time.Now(), 0
		_, err := p.current().run.Items(b.Context(), func() (source.Row, error) {
			if next == n {
				return source.Row{}, io.EOF
			}
			next++
			return rows[next%len(rows)], nil
		}, nil, func([]outcome.Result) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	var times []time.Duration
	single := func() time.Duration {
		var all sync.WaitGroup
		var next atomic.Int64
		took := make([]time.Duration, n)
		start := time.Now()
		for range callers {
			all.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					begun := time.Now()
					if _, err := p.Answer(b.Context(), engine.Item{Text: rows[i%len(rows)].Text}); err != nil {
						b.Error(err)
						return
					}
					took[i] = time.Since(begun)
				}
			})
		}
		all.Wait()
		end := time.Since(start)
		times = append(times, took...)
		return end
	}
	batch()
	single()
	times = nil
	var shares []float64
	for i := 0; b.Loop(); i++ {
		var run, calls time.Duration
		if i%2 == 0 {
			run, calls = batch(), single()
		} else {
			calls, run = single(), batch()
		}
		shares = append(shares, run.Seconds()/calls.Seconds())
	}
	mean, square := 0.0, 0.0
	for _, s := range shares {
		mean += s / float64(len(shares))
	}
	for _, s := range shares {
		square += (s - mean) * (s - mean)
	}
	b.ReportMetric(mean, "share")
	if k := float64(len(shares)); k > 1 {
		b.ReportMetric(math.Sqrt(square/(k-1)/k), "share-error")
	}
	percentiles(b, times, "busy")
	var alone []time.Duration
	for _, row := range rows {
		begun := time.Now()
		must.Get(p.Answer(b.Context(), engine.Item{Text: row.Text}))(b)
		alone = append(alone, time.Since(begun))
	}
	percentiles(b, alone, "alone")
}

func percentiles(b *testing.B, times []time.Duration, what string) {
	b.Helper()
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(share*float64(len(times)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), what+"-p50-ms")
	b.ReportMetric(at(0.99), what+"-p99-ms")
	b.ReportMetric(at(0.99)/at(0.5), what+"-p99/p50")
}
