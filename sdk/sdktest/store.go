package sdktest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// storeChecks are those that hold for any store. They use a collection with
// both sides; a store without a lexical side may refuse it with a clear error,
// which fails here.
var storeChecks = map[string]check{
	"a life of a collection": lifeOfCollection,
}

func lifeOfCollection(t testing.TB, stage sdk.Stage, config string) error {
	ctx := t.Context()
	s, _, err := open(t, stage, sdk.Setup{StateDir: t.TempDir()}, config)
	if err != nil {
		return err
	}
	const name = "conformance"
	schema := sdk.Schema{Dimension: 3, Analyzer: "standard"}
	entries := []sdk.Entry{
		{ID: "a", Text: "lost card", Label: "card", Context: "shop", Meta: sdk.Meta{"n": 1.0, "ok": true, "s": "x"}, Vector: []float32{1, 0, 0}, Hash: []byte{1}},
		{ID: "b", Text: "change my pin", Label: "pin", Vector: []float32{0, 1, 0}, Hash: []byte{2}},
		{ID: "c", Text: "rain tomorrow", Label: "weather", Vector: []float32{0, 0, 1}, Hash: []byte{3}},
	}
	if c, err := s.Open(ctx, name, schema); err != nil || c.Entries != 0 {
		return fmt.Errorf("a new collection opens with %d entries, %v", c.Entries, err)
	}
	if err := errors.Join(s.Put(ctx, name, nil), s.Put(ctx, name, entries), s.Commit(ctx, name, []byte("first"))); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := s.Put(ctx, name, []sdk.Entry{{ID: "d", Text: "never committed", Vector: []float32{1, 0, 0}}}); err != nil {
		return err
	}
	c, err := s.Open(ctx, name, schema)
	if err != nil || c.Entries != 3 || string(c.Note) != "first" {
		return fmt.Errorf("after a commit of 3 entries and one uncommitted, Open gives %+v, %v", c, err)
	}
	got, err := s.Get(ctx, name, []string{"c", "unknown", "a"})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if got[0].ID != "c" || got[1].ID != "" || got[2].Text != "lost card" || got[2].Meta["n"] != 1.0 || got[2].Context != "shop" {
		return fmt.Errorf("get c, unknown, a: %+v", got)
	}
	for mode, want := range map[sdk.Mode]string{sdk.ModeDense: "b", sdk.ModeLexical: "c", sdk.ModeHybrid: "b"} {
		r := sdk.Ranking{Search: sdk.Search{Mode: mode, Depth: 3}, Fusion: sdk.Fusion{Method: "weighted", DenseWeight: .8}, TopK: 2, Texts: true}
		q := sdk.Query{Text: "rain", Vector: []float32{.1, .9, 0}}
		if mode == sdk.ModeLexical {
			q.Vector = nil
		}
		lists, err := s.Retrieve(ctx, name, r, []sdk.Query{q, q})
		if err != nil {
			return fmt.Errorf("%s search: %w", mode, err)
		}
		for _, list := range lists {
			if len(list) == 0 || len(list) > 2 || list[0].ID != want || list[0].Label == "" || list[0].Text == "" {
				return fmt.Errorf("%s search: got %+v, want %s first, with its label and text", mode, list, want)
			}
		}
	}
	if lists, err := s.Retrieve(ctx, name, sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, Depth: 3}, Fusion: sdk.Fusion{Method: "rrf"}, TopK: 2}, nil); err != nil || len(lists) != 0 {
		return fmt.Errorf("a search without queries gives %d lists, %v", len(lists), err)
	}
	seen := map[string]bool{}
	for after, first := "", true; first || after != ""; first = false {
		page, err := s.Scan(ctx, name, sdk.Scan{After: after, Limit: 2, Vectors: true})
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for _, e := range page.Entries {
			if seen[e.ID] || len(e.Vector) != 3 || len(e.Hash) != 1 {
				return fmt.Errorf("scan: entry %+v is there twice or incomplete", e)
			}
			seen[e.ID] = true
		}
		after = page.Next
	}
	if len(seen) != 3 {
		return fmt.Errorf("scan saw %d of 3 entries", len(seen))
	}
	if err := errors.Join(s.Delete(ctx, name, []string{"a", "unknown"}), s.Commit(ctx, name, []byte("second"))); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if page, err := s.Scan(ctx, name, sdk.Scan{Limit: 10, Labels: []string{"card", "pin"}}); err != nil || len(page.Entries) != 1 || page.Entries[0].ID != "b" {
		return fmt.Errorf("after deleting a, the labels card and pin have %+v, %v", page.Entries, err)
	}
	return nil
}
