package stores

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// filterCases hold the table, a subtest for each row, and what no row can say.
var filterCases = slices.Concat(filterRows(), tenantCases, []storeCase{
	{"ids of odd strings", func(c *collection) { c.filtersOf(oddStrings, id) }},
	{"labels of odd strings", func(c *collection) { c.filtersOf(oddStrings, label) }},
	{"metadata of odd strings", func(c *collection) { c.filtersOf(oddStrings, meta("s")) }},
	{"zero bytes", func(c *collection) {
		for _, f := range []field{id, label, meta("s")} {
			c.fresh(c.schema).filtersOf([]string{"\x00", "a\x00", "a\x00b", "a", "ab"}, f)
		}
	}},
	{"keys of odd strings", func(c *collection) { c.filteredKeys(oddStrings) }},
	{"keys like names of columns", func(c *collection) {
		c.filteredKeys([]string{"id", "pk", "text", "label", "context", "meta", "vector", "hash", "dense", "sparse", "0", "and", "not", "in", "like", "exists"})
	}},
	{"long values", (*collection).longValues},
	{"many values", (*collection).manyValues},
	{"one for each query", (*collection).filterPerQuery},
	{"after changes", (*collection).filterAfterChanges},
	{"random trees", (*collection).randomFilters},
})

func filterRows() []storeCase {
	var all []storeCase
	for _, row := range filterTable {
		all = append(all, storeCase{row.name, func(c *collection) { c.fillMeta(); c.selects(row.filters...) }})
	}
	return all
}

// fillMeta puts one entry for each metadata.
func (c *collection) fillMeta() {
	c.Helper()
	var entries []sdk.Entry
	for i, m := range filterMeta {
		entries = append(entries, sdk.Entry{ID: fmt.Sprintf("f%02d", i), Label: []string{"", "red", "green", "Red", "grün"}[i%5], Meta: m})
	}
	c.fillFiltered(entries...)
}

// fillFiltered puts entries for filters. Each gets a word of its own and a length
// of its own, so that a query for all of these words finds all entries by either
// leg, with clear scores.
func (c *collection) fillFiltered(entries ...sdk.Entry) {
	c.Helper()
	if !c.Stage.Filters {
		c.Skipf("the stage does not declare sdk.Filters, so it gets no filter")
	}
	random := rand.New(rand.NewPCG(2, 9))
	for i := range entries {
		entries[i].Text = fmt.Sprint("own", i, strings.Repeat(" filler", i))
		entries[i].Vector = randomVector(random)
	}
	c.put(entries...)
	c.commit("")
}

// selects compares searches with each filter: of everything that it selects,
// and of the three best that each leg finds.
func (c *collection) selects(filters ...sdk.Filter) {
	c.Helper()
	q := c.everything()
	queries := make([]sdk.Query, len(filters))
	for i := range filters {
		queries[i] = q
		queries[i].Filter = &filters[i]
	}
	search := func(mode sdk.Mode, n int) {
		c.Helper()
		r := ranking(mode, weighted, n, n)
		r.Texts = false
		c.compare(r, queries...)
	}
	search(sdk.ModeDense, len(c.now))
	if c.options.DenseOnly != "" {
		search(sdk.ModeDense, 3)
		return
	}
	search(sdk.ModeLexical, len(c.now))
	search(sdk.ModeHybrid, 3)
}

// everything is a query for all entries that fillFiltered put, whose scores are
// all clear by either leg.
func (c *collection) everything() sdk.Query {
	c.Helper()
	var words []string
	for i := range c.now {
		_, own, _ := strings.Cut(c.now[i].Text, "own")
		own, _, _ = strings.Cut(own, " ")
		words = append(words, "own"+own)
	}
	slices.Sort(words)
	random := rand.New(rand.NewPCG(4, 4))
	for range 100_000 {
		q := sdk.Query{Text: strings.Join(words, " "), Vector: randomVector(random)}
		if c.clear(c.now.dense(q), len(c.now)) {
			return q
		}
	}
	c.Skipf("with a tolerance of %v the order of the entries is not clear", c.options.Tolerance)
	return sdk.Query{}
}

// filtersOf looks for each string in a field that holds one of them.
func (c *collection) filtersOf(all []string, f field) {
	var entries []sdk.Entry
	for i, x := range all {
		e := sdk.Entry{ID: fmt.Sprintf("f%02d", i), Label: "l", Meta: sdk.Meta{"s": "m"}}
		switch f.field {
		case sdk.FieldID:
			e.ID = x
		case sdk.FieldLabel:
			e.Label = x
		default:
			e.Meta["s"] = x
		}
		entries = append(entries, e)
	}
	if f.field != sdk.FieldID {
		entries = append(entries, sdk.Entry{ID: "empty", Meta: sdk.Meta{"s": ""}})
	}
	c.fillFiltered(entries...)
	var filters []sdk.Filter
	for _, x := range append(all, "") {
		filters = append(filters, f.is(x), not(f.is(x)), f.prefix(x), f.compare(sdk.FilterLess, x), f.compare(sdk.FilterGreaterEqual, x))
	}
	filters = append(filters, f.is(anyOf(all[:len(all)/2])...), not(f.is(anyOf(all)...)))
	c.selects(filters...)
}

func anyOf(all []string) []any {
	out := make([]any, len(all))
	for i, x := range all {
		out[i] = x
	}
	return out
}

// filteredKeys looks for values under each key.
func (c *collection) filteredKeys(keys []string) {
	entries := []sdk.Entry{{ID: "without metadata"}}
	for i, key := range keys {
		entries = append(entries,
			sdk.Entry{ID: fmt.Sprint("s", i), Label: key, Meta: sdk.Meta{key: "here", "a key": "here"}},
			sdk.Entry{ID: fmt.Sprint("n", i), Meta: sdk.Meta{key: float64(i)}})
	}
	c.fillFiltered(entries...)
	var filters []sdk.Filter
	for i, key := range keys {
		filters = append(filters, meta(key).is("here"), not(meta(key).is("here")), meta(key).is(float64(i)), meta(key).compare(sdk.FilterLess, float64(i)+1))
	}
	c.selects(filters...)
}

func (c *collection) longValues() {
	long := strings.Repeat("é", longID/2)
	c.fillFiltered(
		sdk.Entry{ID: long, Label: long, Meta: sdk.Meta{"s": long, long: "key"}},
		sdk.Entry{ID: long[:longID-2] + "x", Label: long[:longID-2], Meta: sdk.Meta{"s": long + "x"}},
		sdk.Entry{ID: "short", Label: "short", Meta: sdk.Meta{"s": "short"}},
	)
	for _, f := range []field{id, label, meta("s")} {
		c.selects(f.is(long), f.prefix(long), f.prefix(long[:longID-2]), f.compare(sdk.FilterGreater, long), not(f.is(long)))
	}
	c.selects(meta(long).is("key"))
}

func (c *collection) manyValues() {
	c.fillMeta()
	var ids, numbers []any
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("f%02d", 2*i))
		numbers = append(numbers, float64(i)/2)
	}
	c.selects(id.is(ids...), not(id.is(ids...)), meta("n").is(numbers...), and(id.is(ids...), meta("n").is(numbers...)))
	var each []sdk.Filter
	for _, x := range ids[:20] {
		each = append(each, id.is(x))
	}
	c.selects(or(each...), not(or(each...)))
}

// filterPerQuery checks that filters stay with their queries in a batch.
func (c *collection) filterPerQuery() {
	c.fillMeta()
	q := c.everything()
	red, none := label.is("red"), label.is("no such label")
	var queries []sdk.Query
	for i := range 40 {
		query := q
		switch i % 4 {
		case 1:
			query.Filter = &red
		case 2:
			own := id.is(fmt.Sprintf("f%02d", i))
			query.Filter = &own
		case 3:
			query.Filter = &none
		}
		queries = append(queries, query)
	}
	for _, mode := range c.modes() {
		for _, f := range []sdk.Fusion{weighted, rrf} {
			c.compare(ranking(mode, f, 10, 10), queries...)
		}
	}
}

// filterAfterChanges checks that filters see what is committed, and no more.
func (c *collection) filterAfterChanges() {
	c.fillMeta()
	look := func() {
		c.Helper()
		c.selects(label.is("red"), label.is("changed"), meta("n").is(77.0), not(label.is("red")))
	}
	for _, id := range []string{"f01", "f02"} {
		e := c.now[id]
		e.Label, e.Meta = "changed", sdk.Meta{"n": 77.0}
		c.put(e)
	}
	c.delete("f06")
	look()
	c.commit("")
	look()
	c.restart()
	look()
}

// randomFilters compares trees of every operator.
func (c *collection) randomFilters() {
	random := rand.New(rand.NewPCG(6, 6))
	c.fillMeta()
	for range 5 {
		var batch []sdk.Filter
		for range 40 {
			batch = append(batch, randomFilter(random, 3))
		}
		c.selects(batch...)
	}
}
