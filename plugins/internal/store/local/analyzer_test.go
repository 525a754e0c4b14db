package local

import (
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestWordsOfBefore: a collection keeps using the version of the analyzer that made it, even for later entries.
func TestWordsOfBefore(t *testing.T) {
	for kept, want := range map[string]map[string]string{
		"standard":   {"haftpflicht": "", "pflicht": "a b", "οδος": "", "οδοσ": "a b"},
		"standard/2": {"haftpflicht": "a b", "pflicht": "", "οδος": "a b", "οδοσ": "a b"},
	} {
		dir := t.TempDir()
		s := openStore(t, dir)
		_, err := s.collection("c").open(sdk.Schema{Dimension: 2, Analyzer: kept})
		must.Do(t, err)
		const text = "Die Haft\u00ADpflicht, ΟΔΟΣ"
		commit(t, s, nil, entry("a", text, 1, 0), entry("x", "no such word", 0, 1))
		s.Close()
		s = openSmall(t, dir)
		commit(t, s, nil, entry("b", text, 1, 0))
		for query, ids := range want {
			hits, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 9}, []sdk.Query{{Text: query}})
			must.Do(t, err)
			if got := hitIDs(hits[0].Lexical); got != ids {
				t.Errorf("%s: %s finds %q, want %q", kept, query, got, ids)
			}
		}
		must.Do(t, check(ctx, Location{dir, "c"}))
	}
}
