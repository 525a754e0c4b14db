package milvus

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/local"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestLanguageSameAsLocal searches both stores in German: they find other forms of the words, with the same scores.
func TestLanguageSameAsLocal(t *testing.T) {
	e := startEngine(t)
	theirs, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, nil)
	must.Do(t, err)
	reference := theirs.(sdk.Store)
	ours := openStore(t, e.config())
	queries := []sdk.Query{{Text: "Haus"}, {Text: "die Kündigungen des Vertrags"}, {Text: "Rechnung der Häuser"}, {Text: "der die das"}}
	var hits [2][]sdk.Hits
	for i, s := range []sdk.Store{ours, reference} {
		_, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "german"})
		must.Do(t, err)
		must.Do(t, s.Put(t.Context(), "c", []sdk.Entry{
			{ID: "houses", Text: "Zwei Häuser und ein Garten", Vector: []float32{1, 0}},
			{ID: "contract", Text: "Ich möchte den Vertrag kündigen", Vector: []float32{0, 1}},
			{ID: "bill", Text: "Rechnungen für das Haus, die nicht bezahlt sind", Vector: []float32{1, 1}},
		}))
		must.Do(t, s.Commit(t.Context(), "c", nil))
		hits[i], err = s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 10}, queries)
		must.Do(t, err)
	}
	for i, want := range [][]string{{"houses", "bill"}, {"contract"}, {"bill", "houses"}, nil} {
		a, b := hits[0][i].Lexical, hits[1][i].Lexical
		if len(a) != len(want) || len(b) != len(want) {
			t.Fatalf("%q: %d and %d hits, want %q", queries[i].Text, len(a), len(b), want)
		}
		for j, id := range want {
			if a[j].ID != id || b[j].ID != id || a[j].Lexical-b[j].Lexical > 1e-5 || b[j].Lexical-a[j].Lexical > 1e-5 {
				t.Errorf("%q: %+v and %+v, want %s", queries[i].Text, a[j], b[j], id)
			}
		}
	}
}

// TestFormulaSameAsLocal gives both stores another formula of BM25.
func TestFormulaSameAsLocal(t *testing.T) {
	e := startEngine(t)
	theirs, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, []byte(`{"k1": 0.4, "b": 0.2}`))
	must.Do(t, err)
	config := e.config()
	config.K1, config.B = 0.4, 0.2
	ours := openStore(t, config)
	entries := []sdk.Entry{entry("a", "tea tea tea"), entry("b", "tea and a lot of other words, milk among them"), entry("c", "milk"), entry("d", "")}
	for _, s := range []sdk.Store{ours, theirs.(sdk.Store)} {
		_, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
		must.Do(t, err)
		must.Do(t, s.Put(t.Context(), "c", entries))
		must.Do(t, s.Commit(t.Context(), "c", nil))
	}
	sameWords(t, ours, theirs.(sdk.Store), "tea", "milk tea", "tea tea of other")
}
