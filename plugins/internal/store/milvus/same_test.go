package milvus

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/embed"
	"github.com/racflow/racflow/plugins/internal/store/local"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// shared is the folder of public data sets, if it exists.
const shared = "../../../../../shared/data/"

// TestSameAsLocal compares the ten best results of the two stores on real texts.
func TestSameAsLocal(t *testing.T) {
	for name, load := range map[string]func(testing.TB) ([]sdk.Entry, []string){"rage": rage, "scifact": scifact} {
		t.Run(name, func(t *testing.T) {
			entries, texts := load(t)
			if testing.Short() {
				entries, texts = entries[:min(2000, len(entries))], texts[:min(75, len(texts))]
			}
			e := startEngine(t)
			queries := embedHashed(t, entries, texts)
			config := e.config()
			ours := openStore(t, config)
			theirs, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, nil)
			if err != nil {
				t.Fatal(err)
			}
			reference := theirs.(sdk.Store)
			fill(t, ours, entries)
			fill(t, reference, entries)
			// Some changes, so that the statistics of the words change.
			changed := slices.Clone(entries[:len(entries)/10])
			for i := range changed {
				changed[i].Text = entries[len(entries)-1-i].Text
			}
			for _, s := range []sdk.Store{ours, reference} {
				must.Do(t, s.Put(t.Context(), "c", changed))
				must.Do(t, s.Delete(t.Context(), "c", []string{entries[len(entries)/2].ID}))
				must.Do(t, s.Commit(t.Context(), "c", []byte("changed")))
			}
			for _, mode := range []sdk.Mode{sdk.ModeDense, sdk.ModeLexical, sdk.ModeHybrid} {
				want := hitsOf(t, reference, mode, queries)
				start := time.Now()
				got := hitsOf(t, ours, mode, queries)
				t.Logf("%s: %v per query", mode, time.Since(start)/time.Duration(len(queries)))
				for _, f := range []sdk.Fusion{{Method: support.Weighted, DenseWeight: 0.7}, {Method: support.RRF, K: 60}} {
					for _, topK := range []int{10, 60} {
						same := 0
						for i := range queries {
							list := support.Fuse(got[i], f, topK)
							if at := slices.IndexFunc(list, func(c sdk.Candidate) bool { return c.Dense != c.Dense }); at >= 0 && mode != sdk.ModeLexical {
								t.Errorf("query %d: candidate %d has no cosine", i, at)
							}
							if sameRanking(list, support.Fuse(want[i], f, topK)) {
								same++
							}
						}
						share := float64(same) / float64(len(queries))
						if share < 0.99 {
							t.Errorf("%s, %s, %d: the best are the same in %.3f of the queries, want 0.99", mode, f.Method, topK, share)
						}
					}
				}
			}
		})
	}
}

func fill(t testing.TB, s sdk.Store, entries []sdk.Entry) {
	t.Helper()
	_, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: len(entries[0].Vector), Analyzer: "standard"})
	must.Do(t, err)
	for part := range slices.Chunk(entries, 256) {
		must.Do(t, s.Put(t.Context(), "c", part))
	}
	must.Do(t, s.Commit(t.Context(), "c", []byte("filled")))
}

func hitsOf(t testing.TB, s sdk.Store, mode sdk.Mode, queries []sdk.Query) (all []sdk.Hits) {
	t.Helper()
	for part := range slices.Chunk(queries, 64) {
		hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: mode, NumCandidates: 240}, part)
		must.Do(t, err)
		all = append(all, hits...)
	}
	return all
}

// sameRanking allows only entries with equal scores to swap.
func sameRanking(a, b []sdk.Candidate) bool {
	return slices.EqualFunc(a, b, func(a, b sdk.Candidate) bool {
		return math.Abs(float64(a.Score-b.Score)) < 1e-5*max(1, math.Abs(float64(b.Score)))
	})
}

func embedHashed(t testing.TB, entries []sdk.Entry, texts []string) []sdk.Query {
	t.Helper()
	ctx := context.Background()
	stage, err := embed.Hashing().Open(ctx, sdk.Setup{StateDir: t.TempDir()}, []byte(`{"dimension": 384}`))
	must.Do(t, err)
	passages, rows := make([]string, len(entries)), make([]sdk.TrainingRow, len(entries))
	for i, e := range entries {
		passages[i] = e.Context + "\n" + e.Text
		rows[i] = sdk.TrainingRow{ID: e.ID, Text: passages[i]}
	}
	must.Do(t, stage.(sdk.Fitter).Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) { yield(rows, nil) }))
	vectors, err := stage.(sdk.Embedder).Embed(ctx, sdk.RolePassage, passages)
	must.Do(t, err)
	for i := range entries {
		entries[i].Vector = vectors[i]
	}
	vectors, err = stage.(sdk.Embedder).Embed(ctx, sdk.RoleQuery, texts)
	must.Do(t, err)
	queries := make([]sdk.Query, len(texts))
	for i := range queries {
		queries[i] = sdk.Query{Text: texts[i], Vector: vectors[i]}
	}
	return queries
}

func readLines(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skipf("%s is not there", path)
	}
	must.Do(t, err)
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	must.Do(t, scanner.Err())
	return lines
}

func rage(t testing.TB) (entries []sdk.Entry, queries []string) {
	for _, line := range readLines(t, shared+"rage/train.tsv")[1:] {
		part := strings.Split(line, "\t")
		entries = append(entries, sdk.Entry{ID: part[0], Text: part[1], Label: part[2]})
	}
	for _, line := range readLines(t, shared+"rage/test.tsv")[1:1001] {
		_, text, _ := strings.Cut(line, "\t")
		queries = append(queries, text)
	}
	return entries, queries
}

func scifact(t testing.TB) (entries []sdk.Entry, queries []string) {
	for _, line := range readLines(t, shared+"scifact/corpus.jsonl") {
		var doc struct{ ID, Title, Text string }
		must.Do(t, json.Unmarshal([]byte(line), &doc))
		entries = append(entries, sdk.Entry{ID: doc.ID, Context: doc.Title, Text: doc.Text})
	}
	for _, line := range readLines(t, shared+"scifact/queries_test_public.jsonl") {
		var query struct{ Query string }
		must.Do(t, json.Unmarshal([]byte(line), &query))
		queries = append(queries, query.Query)
	}
	return entries, queries
}
