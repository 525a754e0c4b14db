package stores

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

func is(f sdk.Field, key string, values ...any) sdk.Filter {
	return sdk.Filter{Op: sdk.FilterIn, Field: f, Key: key, Values: values}
}

func compare(op sdk.FilterOp, key string, value any) sdk.Filter {
	return sdk.Filter{Op: op, Field: sdk.FieldMeta, Key: key, Values: []any{value}}
}

// attachedFilterTable are filters on every part that a row of the suite has, of every type, and on some
// that it lacks: a column of a fixed type is compared with values of others, too.
var attachedFilterTable = func() []sdk.Filter {
	const id, label, meta = sdk.FieldID, sdk.FieldLabel, sdk.FieldMeta
	year := func(op sdk.FilterOp, v float64) sdk.Filter { return compare(op, "year", v) }
	price := func(op sdk.FilterOp, v float64) sdk.Filter { return compare(op, "price", v) }
	open := is(meta, "open", true)
	return []sdk.Filter{
		is(id, "", "1000"), is(id, "", "1000", "1037", "unknown"), is(id, "", "01000"), is(id, ""), not(is(id, "", "1000")),
		{Op: sdk.FilterPrefix, Field: id, Values: []any{"10"}}, {Op: sdk.FilterLess, Field: id, Values: []any{"1100"}},
		is(label, "", "refund"), is(label, "", "Refund"), is(label, "", ""), is(label, "", "größe", "parcel"), not(is(label, "", "refund")),
		{Op: sdk.FilterPrefix, Field: label, Values: []any{"re"}}, {Op: sdk.FilterPrefix, Field: label, Values: []any{"%"}},
		is(meta, "lang", "de"), is(meta, "lang", "日本語", ""), not(is(meta, "lang", "de")), compare(sdk.FilterPrefix, "lang", "d"),
		compare(sdk.FilterLess, "lang", "e"), compare(sdk.FilterGreaterEqual, "lang", "en"),
		is(meta, "year", 2000.0), is(meta, "year", 2000.0, 2001.0), is(meta, "year", 2000.5), is(meta, "year", "2000"), not(is(meta, "year", 2000.0)),
		year(sdk.FilterLess, 2000), year(sdk.FilterLessEqual, 2000), year(sdk.FilterGreater, 2000), year(sdk.FilterGreaterEqual, 2000.5), year(sdk.FilterLess, 1e300),
		year(sdk.FilterGreater, math.Inf(-1)),
		is(meta, "price", 0.25), is(meta, "price", 0.1), price(sdk.FilterLess, 0), price(sdk.FilterGreaterEqual, 1.75),
		open, is(meta, "open", false), not(open), is(meta, "open", 1.0), is(meta, "open", "true"),
		is(meta, "missing", "x"), not(is(meta, "missing", "x")), compare(sdk.FilterLess, "missing", 1.0), is(meta, "Lang", "de"),
		and(), or(), and(is(meta, "lang", "de"), year(sdk.FilterGreaterEqual, 2000)), or(is(label, "", "refund"), not(open)),
		not(or(is(meta, "lang", "de"), and(open, not(is(label, "", "parcel"))))), and(is(meta, "year", "2000"), is(meta, "missing", true)),
	}
}()

func (v *view) filters() {
	if !v.Stage.Filters {
		v.Skipf("the stage does not declare sdk.Filters, so it gets no filter")
	}
	q := queries(1)[0]
	asked := make([]sdk.Query, len(attachedFilterTable))
	for i := range attachedFilterTable {
		asked[i] = sdk.Query{Vector: q.Vector, Filter: &attachedFilterTable[i]}
	}
	for _, n := range []int{3, len(v.rows)} {
		lists, err := v.retrieve(sdk.ModeDense, n, asked...)
		if err != nil {
			v.Fatalf("%v", err)
		}
		for i := range asked {
			v.check(asked[i], n, lists[i])
		}
	}
}

// retrieve searches for the n best of each query, with their texts.
func (v *view) retrieve(mode sdk.Mode, n int, queries ...sdk.Query) ([][]sdk.Candidate, error) {
	return v.process.Stage.Retrieve(v.Context(), v.found.Name, sdk.Ranking{
		Search: sdk.Search{Mode: mode, NumCandidates: n, Texts: true, Norm: v.norm}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 0.7}, TopK: n,
	}, queries)
}

// ranked returns the rows that the query's filter selects, by their cosines.
func (v *view) ranked(q sdk.Query) []sdk.Candidate {
	var all []sdk.Candidate
	for _, e := range v.rows {
		if q.Filter.Match(e.ID, e.Label, e.Meta) {
			all = append(all, sdk.Candidate{ID: e.ID, Dense: float32(cosine(q.Vector, e.Vector))})
		}
	}
	slices.SortFunc(all, func(a, b sdk.Candidate) int { return cmp.Compare(b.Dense, a.Dense) })
	return all
}

// check compares candidates of a dense search with the head of what they ought to be. Those whose
// cosines differ by rounding only may change places.
func (v *view) check(q sdk.Query, n int, got []sdk.Candidate) {
	v.Helper()
	want := v.ranked(q)
	if n = min(n, len(want)); len(got) != n {
		v.Fatalf("filter %s: %d candidates, want %d", q.Filter, len(got), n)
	}
	seen := map[string]bool{}
	for i, c := range got {
		e := sdk.Entry{ID: c.ID, Text: c.Text, Context: c.Context, Label: c.Label, Meta: c.Meta}
		if err := v.same(e, true); err != nil || seen[c.ID] {
			v.Fatalf("place %d: %q, there before: %v, %v", i, c.ID, seen[c.ID], err)
		}
		seen[c.ID] = true
		if !q.Filter.Match(c.ID, c.Label, c.Meta) {
			v.Fatalf("filter %s: place %d has %q, which it does not select", q.Filter, i, c.ID)
		}
		if own := cosine(q.Vector, v.byID[c.ID].Vector); !v.near(c.Dense, own) || !v.near(c.Dense, float64(want[i].Dense)) {
			v.Fatalf("filter %s: place %d has %q with the dense score %v; its cosine is %v, and the best one left is %v", q.Filter, i, c.ID, c.Dense, own, want[i].Dense)
		}
	}
}

func (v *view) near(got float32, want float64) bool {
	return math.Abs(float64(got)-want) <= v.Options.Tolerance*max(1, math.Abs(want))
}

// queries are random ones.
func queries(n int) []sdk.Query {
	random := rand.New(rand.NewPCG(3, 5))
	all := make([]sdk.Query, n)
	for i := range all {
		all[i] = sdk.Query{Text: words[i%len(words)], Vector: vector(random)}
		for d := range all[i].Vector {
			all[i].Vector[d] *= float32(i + 1) // its length does not count
		}
	}
	return all
}

func (v *view) dense() {
	all := queries(12)
	for _, n := range []int{1, 10, len(v.rows), len(v.rows) + 50} {
		lists, err := v.retrieve(sdk.ModeDense, n, all...)
		if err != nil || len(lists) != len(all) {
			v.Fatalf("%d lists for %d queries, %v", len(lists), len(all), err)
		}
		for i, q := range all {
			v.check(q, n, lists[i])
		}
	}
	bad := []sdk.Query{all[0], {Text: "walrus", Vector: make([]float32, attachedDimension)}}
	lists, err := v.retrieve(sdk.ModeDense, 5, bad...)
	if err != nil || len(lists) != 2 || len(lists[0]) != 5 || len(lists[1]) != 0 {
		v.Errorf("a query whose vector is all zero gives %v, %v; it finds nothing", lists, err)
	}
}

func (v *view) anyLength() {
	v.make(rows(0))
	v.cosines()
	v.make(rows(count / 2))
	for _, e := range v.rows {
		v.norm += norm(e.Vector) / count
	}
	v.cosines()
}

// cosines checks the scores, and the places where all are found.
func (v *view) cosines() {
	all := queries(6)
	lists, err := v.retrieve(sdk.ModeDense, len(v.rows), all...)
	if err != nil {
		v.Fatalf("%v", err)
	}
	for i, q := range all {
		v.check(q, len(v.rows), lists[i])
	}
	if lists, err = v.retrieve(sdk.ModeDense, 10, all...); err != nil {
		v.Fatalf("%v", err)
	}
	for i, q := range all { // which ten the server finds may depend on the lengths
		for _, c := range lists[i] {
			if own := cosine(q.Vector, v.byID[c.ID].Vector); !v.near(c.Dense, own) {
				v.Fatalf("%q has the dense score %v, its cosine is %v", c.ID, c.Dense, own)
			}
		}
	}
}
