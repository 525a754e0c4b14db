package sdk_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// theirs are tables that somebody else writes.
var theirs = map[string][]sdk.Entry{"faq": {
	{ID: "1", Text: "Where is my parcel?", Label: "parcel", Vector: []float32{1, 0}},
	{ID: "2", Text: "I want my money back.", Label: "refund", Vector: []float32{0, 1}},
}}

// table is a store that only reads tables of others. The example leaves out Get and Scan, and the
// methods that write, which all return an error made by Invalid.
type table struct {
	sdk.Store
	name string
	rows []sdk.Entry
}

func (t *table) Attach(context.Context) (sdk.Attached, error) {
	rows, ok := theirs[t.name]
	if !ok {
		return sdk.Attached{}, sdk.Invalid(fmt.Errorf("there is no table %q", t.name))
	}
	t.rows = rows
	return sdk.Attached{
		Name: t.name, ID: t.name, Entries: len(rows), Dimension: 2, Labels: true,
		Fields: []sdk.AttachedField{{Part: "text", Field: "question", Why: "the only column of texts"}},
		Notes:  []string{"It is not searched by words: the table has no index for that."},
	}, nil
}

func (t *table) Search(_ context.Context, _ string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	if s.Mode == sdk.ModeLexical {
		return nil, sdk.Invalid(fmt.Errorf("table %s is not searched by words", t.name))
	}
	all := make([]sdk.Hits, len(queries))
	for i, q := range queries {
		for _, e := range t.rows {
			all[i].Dense = append(all[i].Dense, sdk.Hit{ID: e.ID, Dense: q.Vector[0]*e.Vector[0] + q.Vector[1]*e.Vector[1], Lexical: sdk.Unscored, Entry: &e})
		}
		slices.SortFunc(all[i].Dense, func(a, b sdk.Hit) int { return int(100 * (b.Dense - a.Dense)) })
		all[i].Dense = all[i].Dense[:min(s.NumCandidates, len(t.rows))]
	}
	return all, nil
}

// A store that serves a collection of another program: an attached collection.
func ExampleAttaches() {
	type config struct {
		Table string `config:"table,required" doc:"A table that somebody else writes."`
	}
	stage := sdk.StoreStage("tables", "Searches tables of others.",
		func(_ context.Context, _ sdk.Setup, c config) (sdk.Store, error) { return &table{name: c.Table}, nil }, sdk.Attaches("table"))
	store := opened[sdk.Attacher](stage, `{"table": "faq"}`)
	found, err := store.Attach(context.Background())
	fmt.Println(found.Entries, found.Notes[0], err)
	hits, err := store.Search(context.Background(), found.Name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 1}, []sdk.Query{{Vector: []float32{.6, .8}}})
	fmt.Println(hits[0].Dense[0].Entry.Text, err)
	// Output:
	// 2 It is not searched by words: the table has no index for that. <nil>
	// I want my money back. <nil>
}
