package stores

import (
	"fmt"
	"math"
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
	q, all := c.everything(), len(c.ids())
	queries := make([]sdk.Query, len(filters))
	for i := range filters {
		queries[i] = q
		queries[i].Filter = &filters[i]
	}
	search := func(mode sdk.Mode, n int) {
		r := ranking(mode, weighted, n, n)
		r.Texts = false
		c.compare(r, queries...)
	}
	search(sdk.ModeDense, all)
	if c.Options.DenseOnly != "" {
		search(sdk.ModeDense, 3)
		return
	}
	search(sdk.ModeLexical, all)
	search(sdk.ModeHybrid, 3)
}

// everything is a query for all entries that fillFiltered put, whose scores are
// all clear by either leg.
func (c *collection) everything() sdk.Query {
	var words []string
	for _, e := range c.entries(c.model, sdk.Scan{Texts: true}) {
		_, own, _ := strings.Cut(e.Text, "own")
		own, _, _ = strings.Cut(own, " ")
		words = append(words, "own"+own)
	}
	slices.Sort(words)
	random := rand.New(rand.NewPCG(4, 4))
	for range 20_000 {
		q := sdk.Query{Text: strings.Join(words, " "), Vector: randomVector(random)}
		if c.clear(sdk.ModeDense, q, len(words)) {
			return q
		}
	}
	c.Skipf("with a tolerance of %v the order of the entries is not clear", c.Options.Tolerance)
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
		c.selects(label.is("red"), label.is("changed"), meta("n").is(77.0), not(label.is("red")))
	}
	for _, e := range c.entries(c.model, sdk.Scan{Texts: true, Vectors: true})[1:3] {
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

// filterMeta are the metadata of the entries that the table is about. Under "v"
// are values of all types, some of which are alike when written.
var filterMeta = []sdk.Meta{
	nil,
	{"v": "1", "n": 1.0, "ok": true, "s": "apple"},
	{"v": 1.0, "n": 0.0, "ok": false, "s": "Apple"},
	{"v": true, "n": -1.0, "s": "apples"},
	{"v": "true", "n": 2.5, "ok": true, "s": "app"},
	{"v": 0.0, "n": -0.5, "s": ""},
	{"v": false, "n": 0.1, "ok": false, "s": "b"},
	{"v": "", "n": 0.3, "s": "banana"},
	{"v": "0", "n": 1e300, "ok": true},
	{"v": "false", "n": -1e300, "s": "éclair"},
	{"v": -1.5, "n": float64(1<<53 - 1), "s": "日本"},
	{"v": "-1.5", "n": float64(1 << 53), "s": "a%"},
	{"n": "1", "ok": "true", "s": 1.0},
	{"n": true, "ok": 1.0, "s": true},
	{"v": "null", "n": 5e-324, "ok": true, "s": "null"},
	{"v": "NaN", "n": 3.0, "s": "apple pie"},
	{"other": "x"},
	{"v": 2.0, "n": 10.0, "ok": false, "s": "zebra"},
	{"v": 10.0, "n": 100.0, "ok": true, "s": "Zebra"},
	{"v": "10", "n": 9.0, "s": "2"},
	{"v": "9", "n": 1.0, "ok": false, "s": "10"},
	{"V": "1", "N": 1.0, "OK": true, "S": "apple"},
}

// filterTable are filters by what they are about.
var filterTable = []struct {
	name    string
	filters []sdk.Filter
}{
	{"id", []sdk.Filter{id.is("f03"), id.is("F03"), id.is("unknown"), id.is(""), id.is("f01", "f05", "f05", "unknown"), not(id.is("f03"))}},
	{"label", []sdk.Filter{label.is("red"), label.is("Red"), label.is("grün"), label.is(""), label.is("red", "green"), not(label.is("red")), not(label.is(""))}},
	{"string", []sdk.Filter{meta("s").is("apple"), meta("s").is("Apple"), meta("s").is(""), meta("s").is("日本"), meta("s").is("1"), meta("s").is("absent")}},
	{"number", []sdk.Filter{number.is(1.0), number.is(0.0), number.is(math.Copysign(0, -1)), number.is(-0.5), number.is(0.1), number.is(0.3), number.is(1e300), number.is(5e-324), number.is(7.0)}},
	{"exact number", []sdk.Filter{number.is(float64(1 << 53)), number.is(float64(1<<53 - 1)), number.compare(sdk.FilterLess, float64(1<<53)), number.is(0.1 + 0.2), number.is(math.Nextafter(0.1, 1))}},
	{"bool", []sdk.Filter{meta("ok").is(true), meta("ok").is(false), not(meta("ok").is(true)), meta("ok").is(true, false)}},
	{"types do not mix", []sdk.Filter{mixed.is("1"), mixed.is(1.0), mixed.is(true), mixed.is("true"), mixed.is(0.0), mixed.is(false), mixed.is(""), mixed.is("0"), mixed.is("-1.5"), mixed.is(-1.5), mixed.is("null")}},
	{"values of several types", []sdk.Filter{mixed.is("1", 1.0, true), mixed.is(false, ""), not(mixed.is("1", 1.0, true)), mixed.is(10.0, "10", "9")}},
	{"missing key", []sdk.Filter{meta("none").is("x"), not(meta("none").is("x")), meta("none").prefix(""), meta("none").compare(sdk.FilterLess, 1e9), not(meta("other").is("x"))}},
	{"empty key", []sdk.Filter{meta("").is(""), meta("").is(1.0), not(meta("").is("x"))}},
	{"key of another case", []sdk.Filter{meta("V").is("1"), meta("N").is(1.0), meta("OK").is(true), meta("S").prefix("app")}},
	{"in nothing", []sdk.Filter{id.is(), mixed.is(), not(mixed.is()), and(id.is("f03"), not(label.is()))}},
	{"number less", []sdk.Filter{number.compare(sdk.FilterLess, 1), number.compare(sdk.FilterLess, -0.5), number.compare(sdk.FilterLess, 0), number.compare(sdk.FilterLess, -1e300), number.compare(sdk.FilterLess, 1e301)}},
	{"number less or equal", []sdk.Filter{number.compare(sdk.FilterLessEqual, 1), number.compare(sdk.FilterLessEqual, -0.5), number.compare(sdk.FilterLessEqual, 0), number.compare(sdk.FilterLessEqual, -1e300)}},
	{"number greater", []sdk.Filter{number.compare(sdk.FilterGreater, 1), number.compare(sdk.FilterGreater, 0), number.compare(sdk.FilterGreater, 1e300), number.compare(sdk.FilterGreater, -1e301)}},
	{"number greater or equal", []sdk.Filter{number.compare(sdk.FilterGreaterEqual, 1), number.compare(sdk.FilterGreaterEqual, 0.3), number.compare(sdk.FilterGreaterEqual, 1e300)}},
	{"infinity", []sdk.Filter{number.compare(sdk.FilterLess, math.Inf(1)), number.compare(sdk.FilterGreater, math.Inf(-1)), number.is(math.Inf(1)), number.compare(sdk.FilterGreaterEqual, math.Inf(1)), number.is(1.0, math.Inf(-1))}},
	{"range of numbers", []sdk.Filter{and(number.compare(sdk.FilterGreaterEqual, 0), number.compare(sdk.FilterLess, 3)), and(number.compare(sdk.FilterGreater, 3), number.compare(sdk.FilterLess, 0))}},
	{"string less", []sdk.Filter{meta("s").compare(sdk.FilterLess, "apple"), meta("s").compare(sdk.FilterLess, "a"), meta("s").compare(sdk.FilterLess, ""), meta("s").compare(sdk.FilterLess, "é"), mixed.compare(sdk.FilterLess, "2")}},
	{"string less or equal", []sdk.Filter{meta("s").compare(sdk.FilterLessEqual, "apple"), meta("s").compare(sdk.FilterLessEqual, ""), label.compare(sdk.FilterLessEqual, "green"), id.compare(sdk.FilterLessEqual, "f04")}},
	{"string greater", []sdk.Filter{meta("s").compare(sdk.FilterGreater, "apple"), meta("s").compare(sdk.FilterGreater, ""), meta("s").compare(sdk.FilterGreater, "é"), label.compare(sdk.FilterGreater, "Red"), id.compare(sdk.FilterGreater, "f1")}},
	{"string greater or equal", []sdk.Filter{meta("s").compare(sdk.FilterGreaterEqual, "apple"), meta("s").compare(sdk.FilterGreaterEqual, ""), mixed.compare(sdk.FilterGreaterEqual, "10"), label.compare(sdk.FilterGreaterEqual, "")}},
	{"prefix of an id", []sdk.Filter{id.prefix("f0"), id.prefix("F0"), id.prefix("f03"), id.prefix("f030"), id.prefix("")}},
	{"prefix of a label", []sdk.Filter{label.prefix("gr"), label.prefix("r"), label.prefix("R"), label.prefix("grü"), label.prefix(""), not(label.prefix("gr"))}},
	{"prefix of metadata", []sdk.Filter{meta("s").prefix("app"), meta("s").prefix("App"), meta("s").prefix("a%"), meta("s").prefix("日"), meta("s").prefix("1"), mixed.prefix("tr"), not(meta("s").prefix("app"))}},
	{"empty prefix", []sdk.Filter{meta("s").prefix(""), mixed.prefix(""), not(mixed.prefix("")), number.prefix("")}},
	{"and", []sdk.Filter{and(), and(label.is("red")), and(label.is("red"), number.is(1.0)), and(label.is("red"), label.is("green")), and(meta("ok").is(true), number.compare(sdk.FilterGreater, 0), not(mixed.is("1")))}},
	{"or", []sdk.Filter{or(), or(label.is("red")), or(label.is("red"), number.is(1.0)), or(label.is("red"), label.is("green"), label.is("nothing"))}},
	{"not", []sdk.Filter{not(and()), not(or()), not(not(label.is("red"))), not(and(label.is("red"), number.is(1.0))), not(or(label.is("red"), number.is(1.0))), not(number.compare(sdk.FilterLess, 1)), not(mixed.prefix("t"))}},
	{"nested", []sdk.Filter{
		or(and(label.is("red"), number.compare(sdk.FilterGreater, 0)), and(label.is("green"), not(meta("ok").is(true)))),
		and(or(label.is("red"), label.is("")), not(or(mixed.is(false), and(number.is(1.0), meta("s").prefix("a"))))),
		deep(sdk.MaxFilterDepth),
	}},
	{"nothing selected", []sdk.Filter{label.is("no such label"), and(id.is("f01"), id.is("f02")), or()}},
	{"everything selected", []sdk.Filter{and(), not(or()), id.prefix(""), not(label.is("no such label"))}},
}

// field is what a comparison compares.
type field struct {
	field sdk.Field
	key   string
}

var (
	id     = field{field: sdk.FieldID}
	label  = field{field: sdk.FieldLabel}
	number = meta("n")
	mixed  = meta("v")
)

func meta(key string) field { return field{sdk.FieldMeta, key} }

func (f field) is(values ...any) sdk.Filter {
	return sdk.Filter{Op: sdk.FilterIn, Field: f.field, Key: f.key, Values: values}
}

func (f field) prefix(s string) sdk.Filter { return f.compare(sdk.FilterPrefix, s) }

// compare takes whole numbers, too.
func (f field) compare(op sdk.FilterOp, value any) sdk.Filter {
	if i, ok := value.(int); ok {
		value = float64(i)
	}
	return sdk.Filter{Op: op, Field: f.field, Key: f.key, Values: []any{value}}
}

func and(parts ...sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterAnd, Parts: parts} }
func or(parts ...sdk.Filter) sdk.Filter  { return sdk.Filter{Op: sdk.FilterOr, Parts: parts} }
func not(part sdk.Filter) sdk.Filter     { return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{part}} }

// deep nests that many levels.
func deep(levels int) sdk.Filter {
	f := label.is("red")
	for i := range levels - 1 {
		f = []func(sdk.Filter) sdk.Filter{
			not,
			func(f sdk.Filter) sdk.Filter { return and(f) },
			func(f sdk.Filter) sdk.Filter { return or(f) },
		}[i%3](f)
	}
	return f
}

// randomFilter draws a tree over what filterMeta holds.
func randomFilter(r *rand.Rand, depth int) sdk.Filter {
	if depth > 0 && r.IntN(4) > 0 {
		parts := make([]sdk.Filter, r.IntN(4))
		for i := range parts {
			parts[i] = randomFilter(r, depth-1)
		}
		switch r.IntN(3) {
		case 0:
			return and(parts...)
		case 1:
			return or(parts...)
		}
		return not(randomFilter(r, depth-1))
	}
	strings := []any{"", "1", "true", "apple", "app", "b", "é", "f05", "red", "Red", "10", "null"}
	numbers := []any{-1.0, 0.0, 0.1, 1.0, 2.5, 9.0, 1e300}
	f := []field{id, label, mixed, number, meta("s"), meta("ok"), meta("none")}[r.IntN(7)]
	op := sdk.FilterIn + sdk.FilterOp(r.IntN(6))
	pool := strings
	if f.field == sdk.FieldMeta && op != sdk.FilterPrefix && r.IntN(2) == 0 {
		pool = numbers
	}
	if op != sdk.FilterIn {
		return f.compare(op, pool[r.IntN(len(pool))])
	}
	if f.field == sdk.FieldMeta && r.IntN(3) == 0 {
		pool = append(append(numbers, strings...), true, false)
	}
	var values []any
	for range r.IntN(4) {
		values = append(values, pool[r.IntN(len(pool))])
	}
	return f.is(values...)
}
