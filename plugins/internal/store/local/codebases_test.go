package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// codebases holds Anthropic's contextual retrieval example, where it is at hand.
const codebases = "../../../../../shared/data/anthropic_codebases/"

// TestCodebases finds pieces of source code by words. A BM25 written apart from
// this one reaches the same 0.760 and 0.829: splitting identifiers helps.
func TestCodebases(t *testing.T) {
	type chunk struct{ ID, Text string }
	type question struct {
		Query string
		Gold  [][]string
	}
	chunks := readLines[chunk](t, codebases+"chunks.jsonl")
	questions := readLines[question](t, codebases+"queries_public.jsonl")
	for analyzer, least := range map[string]float64{"standard": 0.75, "code": 0.82} {
		s := openStore(t, t.TempDir())
		_, err := s.Open(ctx, "c", sdk.Schema{Analyzer: analyzer})
		must.Do(t, err)
		var entries []sdk.Entry
		for _, c := range chunks {
			entries = append(entries, sdk.Entry{ID: c.ID, Text: c.Text})
		}
		commit(t, s, nil, entries...)
		var queries []sdk.Query
		for _, q := range questions {
			queries = append(queries, sdk.Query{Text: q.Query})
		}
		hits, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 20}, queries)
		must.Do(t, err)
		pass := 0.0
		for i, q := range questions {
			for _, gold := range q.Gold {
				if slices.ContainsFunc(hits[i].Lexical, func(h sdk.Hit) bool { return slices.Contains(gold, h.ID) }) {
					pass += 1 / float64(len(q.Gold))
				}
			}
		}
		if pass /= float64(len(questions)); pass < least {
			t.Errorf("%s: pass@20 is %.3f, want at least %.2f", analyzer, pass, least)
		} else {
			t.Logf("%s: pass@20 is %.3f", analyzer, pass)
		}
	}
}

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the data is not here")
	}
	must.Do(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		must.Do(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	must.Do(t, lines.Err())
	return all
}
