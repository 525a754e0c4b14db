package stage_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// sieve is a store that finds all entries that the filter of a query selects. It fails the query
// "poison".
type sieve struct {
	sdk.Store
	mu   sync.Mutex
	seen map[string]string // filter by query
}

func (s *sieve) stage() sdk.Stage {
	memory := enginetest.Memory()
	return sdk.StoreStage("sieve", "A store of the test.", func(ctx context.Context, setup sdk.Setup, _ struct{}) (sdk.Store, error) {
		inner, err := memory.Open(ctx, setup, []byte("{}"))
		if err != nil {
			return nil, err
		}
		s.Store = inner.(sdk.Store)
		return s, nil
	}, sdk.Filters())
}

func (s *sieve) Search(ctx context.Context, collection string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	plain := slices.Clone(queries)
	for i := range plain {
		plain[i].Filter = nil
	}
	search.NumCandidates = 1000
	hits, err := s.Store.Search(ctx, collection, search, plain)
	if err != nil {
		return nil, err
	}
	failed := sdk.RowErrors{}
	for i, q := range queries {
		if q.Text == "poison" {
			failed[i] = errors.New("it is poisoned")
			continue
		}
		if q.Text != "" { // not a search for centroids
			s.mu.Lock()
			s.seen[q.Text] = q.Filter.String()
			s.mu.Unlock()
		}
		for _, side := range []*[]sdk.Hit{&hits[i].Dense, &hits[i].Lexical} {
			if *side, err = s.through(ctx, collection, q.Filter, *side); err != nil {
				return nil, err
			}
		}
	}
	if len(failed) > 0 {
		return hits, failed
	}
	return hits, nil
}

func (s *sieve) through(ctx context.Context, collection string, f *sdk.Filter, hits []sdk.Hit) ([]sdk.Hit, error) {
	ids := make([]string, len(hits))
	for i := range hits {
		ids[i] = hits[i].ID
	}
	entries, err := s.Get(ctx, collection, ids)
	if err != nil {
		return nil, err
	}
	var kept []sdk.Hit
	for i, e := range entries {
		if f.Match(e.ID, e.Label, e.Meta) {
			kept = append(kept, hits[i])
		}
	}
	return kept, nil
}

const tenants = `{"id": "a1", "text": "red apple", "label": "fruit", "tenant": "a", "year": 2019}
{"id": "a2", "text": "red car", "label": "vehicle", "tenant": "a", "year": 2021}
{"id": "b1", "text": "red banana", "label": "fruit", "tenant": "b", "year": 2022}
{"id": "b2", "text": "red bus", "label": "vehicle", "tenant": "b", "year": 2018, "public": true}
{"id": "c1", "text": "red train", "label": "vehicle"}
`

// filtered runs items through a retrieve block with these arguments. It returns the sorted ids of the
// candidates of each, or "!error".
func filtered(t *testing.T, s *sieve, arguments string, items ...source.Row) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	must.Do(t, os.WriteFile(path, []byte(tenants), 0o600))
	s.seen = map[string]string{}
	r := runtest.Pipeline(t, runtest.Stages(s.stage()), `
		retrieve "near" {
			from = knowledge.k
			`+arguments+`
		}`, `"rows.tsv"`, `"`+path+`"`, `use = "memory"`, `use = "sieve"`)
	var got []string
	all, _ := runtest.Taken(t, r, runtest.Rows(items...))
	for _, result := range all {
		var ids []string
		for _, c := range result.Candidates {
			ids = append(ids, c.ID)
		}
		slices.Sort(ids)
		found := strings.Join(ids, " ")
		if result.Failure != nil {
			found = "!" + result.Failure.Error()
		}
		got = append(got, found)
	}
	return got
}

func item(text string, meta sdk.Meta) source.Row { return source.Row{Text: text, Meta: meta} }

func TestFilter(t *testing.T) {
	a, b, nobody := item("red 1", sdk.Meta{"tenant": "a"}), item("red 2", sdk.Meta{"tenant": "b"}), item("red 3", nil)
	for arguments, ids := range map[string][]string{
		`top_k = 60`:                                                       {"a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1"},
		`filter = "label == 'fruit'"`:                                      {"a1 b1", "a1 b1", "a1 b1"},
		`filter = "meta.year >= 2019"`:                                     {"a1 a2 b1", "a1 a2 b1", "a1 a2 b1"},
		`filter = "not (meta.year >= 2019)"`:                               {"b2 c1", "b2 c1", "b2 c1"},
		`filter = "id startsWith 'a'"`:                                     {"a1 a2", "a1 a2", "a1 a2"},
		`filter = "false"`:                                                 {"", "", ""},
		`filter = null`:                                                    {"a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1"},
		`filter = "meta.tenant == item.meta.tenant"`:                       {"a1 a2", "b1 b2", ""},
		`filter = "meta.tenant != item.meta.tenant"`:                       {"b1 b2 c1", "a1 a2 c1", ""},
		`filter = "meta.public or meta.tenant == item.meta.tenant"`:        {"a1 a2 b2", "b1 b2", "b2"},
		"mode = \"lexical\"\nfilter = \"meta.tenant == item.meta.tenant\"": {"a1 a2", "b1 b2", ""},
		"mode = \"dense\"\nfilter = \"item.meta.tenant == nil or meta.tenant == item.meta.tenant\"":                           {"a1 a2", "b1 b2", "a1 a2 b1 b2 c1"},
		"filter = \"meta.tenant == item.meta.tenant\"\nkeep = \"label == 'fruit'\"":                                           {"a1", "b1", ""},
		"filter = \"meta.tenant == item.meta.tenant\"\nfallback \"all\" {\nwhen = \"len(candidates) == 0\"\nfilter = null\n}": {"a1 a2", "b1 b2", "a1 a2 b1 b2 c1"},
		"keep = \"false\"\nfilter = \"id > 'b'\"\nfallback \"same\" {\nwhen = \"true\"\nkeep = null\n}":                       {"b1 b2 c1", "b1 b2 c1", "b1 b2 c1"},
	} {
		if got := filtered(t, &sieve{}, arguments, a, b, nobody); !slices.Equal(got, ids) {
			t.Errorf("%s: got %q, want %q", arguments, got, ids)
		}
	}
}

func TestAFilterTravelsBound(t *testing.T) {
	s := &sieve{}
	filtered(t, s, `filter = "meta.tenant == item.meta.tenant and meta.year > 2000"`,
		item("x", sdk.Meta{"tenant": "a"}), item("y", sdk.Meta{"tenant": "b"}), item("z", nil))
	for text, want := range map[string]string{
		"x": `(meta["tenant"] == "a" and meta["year"] > 2000)`, "y": `(meta["tenant"] == "b" and meta["year"] > 2000)`, "z": `false`,
	} {
		if s.seen[text] != want {
			t.Errorf("%s was searched among %s, want %s", text, s.seen[text], want)
		}
	}
}

func TestAFilterThatErrsFailsItsItemAlone(t *testing.T) {
	items := []source.Row{
		item("red 1", sdk.Meta{"year": 2020.0}), item("red 2", sdk.Meta{"year": "soon"}), item("poison", nil), item("red 3", sdk.Meta{"year": 2021.0}),
	}
	const failure = `!retrieve.near: filter: rule "meta.year > item.meta.year - 1": invalid operation: `
	got := filtered(t, &sieve{}, `filter = "meta.year > item.meta.year - 1"`, items...)
	must.Equal(t, "found", []string{"a2 b1", failure + "string - int", failure + "<nil> - int", "a2 b1"}, got)
	got = filtered(t, &sieve{}, `filter = "meta.year > (item.meta.year ?? 2020)"`, items...)
	must.Equal(t, "found", []string{"a2 b1", "", "!retrieve.near: it is poisoned", "b1"}, got)
	got = filtered(t, &sieve{}, "filter = \"meta.year > item.meta.year - 1\"\nfallback \"all\" {\nwhen = \"failed and error contains 'year'\"\nfilter = null\n}", items[:2]...)
	must.Equal(t, "found", []string{"a2 b1", "a1 a2 b1 b2 c1"}, got)
}
