package stores

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// filterFacts compares filters made from the entries: each operator on each field, with each value of
// the field and some values that no entry has.
func filterFacts() []fact {
	entries := filterEntries()
	var all []fact
	row := func(name string, filters []sdk.Filter) {
		all = append(all, fact{name: name, steps: []step{filtered, put(entries...), commit(""), selects(len(entries), filters...)}})
	}
	fields, values := fieldsOf(entries, meta("none"))
	more := append(values, "%", "unknown", "F03", math.Copysign(0, -1), 0.1+0.2, math.Nextafter(0.1, 1), 1e301)
	var leaves []sdk.Filter
	for name, op := range map[string]sdk.FilterOp{
		"is": sdk.FilterIn, "less": sdk.FilterLess, "less or equal": sdk.FilterLessEqual, "greater": sdk.FilterGreater,
		"greater or equal": sdk.FilterGreaterEqual, "prefix": sdk.FilterPrefix,
	} {
		row(name, compared(op, fields, more))
		leaves = append(leaves, compared(op, fields, values)...)
	}
	row("infinity", slices.Concat(
		compared(sdk.FilterIn, fields, []any{math.Inf(1)}), compared(sdk.FilterLess, fields, []any{math.Inf(1)}),
		compared(sdk.FilterGreater, fields, []any{math.Inf(-1)}), compared(sdk.FilterGreaterEqual, fields, []any{math.Inf(1)})))
	red, one := label.is("red"), meta("n").is(1.0)
	row("not", slices.Concat(negated(compared(sdk.FilterIn, fields, values)), negated(compared(sdk.FilterLess, fields, values)), negated(compared(sdk.FilterPrefix, fields, values)),
		[]sdk.Filter{not(and()), not(or()), not(not(red)), not(and(red, one)), not(or(red, one))}))
	row("and, or", []sdk.Filter{and(), or(), and(red), or(red), and(red, one), or(red, one), and(red, label.is("green")), or(red, label.is("green"), label.is("nothing")), deep(sdk.MaxFilterDepth)})
	random := rand.New(rand.NewPCG(6, 6))
	var trees []sdk.Filter
	for range 200 {
		trees = append(trees, randomFilter(random, leaves, 3))
	}
	row("random trees", trees)
	var many []any
	for i := range 1000 { // values that exist come last
		many = append(many, fmt.Sprintf("f%02d", 2*(999-i)), float64(999-i)/2)
	}
	var several []sdk.Filter
	for _, f := range fields {
		for _, some := range [][]any{{}, values[:3], values, many} {
			several = append(several, f.is(f.takes(sdk.FilterIn, some)...), not(f.is(f.takes(sdk.FilterIn, some)...)))
		}
	}
	row("many values", several)
	for name, strings := range map[string][]string{
		"odd strings": oddStrings, "zero bytes": zeroBytes, "long values": {strings.Repeat("é", longID/2), strings.Repeat("é", longID/2-1), strings.Repeat("é", longID/2-1) + "x"},
	} {
		all = append(all, fact{name: name, steps: oddValues(append(strings, ""))})
	}
	all = append(all, fact{name: "keys of odd strings", steps: oddKeys(oddStrings)}, fact{name: "keys like names of columns", steps: oddKeys(namesOfColumns)},
		fact{name: "empty key", steps: oddKeys([]string{""})})
	changed := slices.Clone(entries[1:3])
	for i := range changed {
		changed[i].Label, changed[i].Meta = "changed", sdk.Meta{"n": 77.0}
	}
	see := selects(len(entries), red, not(red), label.is("changed"), meta("n").is(77.0))
	all = append(all, fact{name: "after changes", steps: []step{filtered, put(entries...), commit(""), put(changed...), del("f06"), see, commit(""), see, restart, see}})
	slices.SortFunc(all, func(a, b fact) int { return strings.Compare(a.name, b.name) })
	return all
}

// filtered skips the fact if the stage gets no filters.
func filtered(c *collection) {
	if !c.Stage.Filters {
		c.Skipf("the stage does not declare sdk.Filters, so it gets no filter")
	}
}

// filterEntries returns entries with metadata of all types; some values look alike when written.
func filterEntries() []sdk.Entry {
	var all []sdk.Entry
	for i, m := range []sdk.Meta{
		nil,
		{"v": "1", "n": 1.0, "ok": true, "s": "apple"},
		{"v": 1.0, "n": 0.0, "ok": false, "s": "Apple"},
		{"v": true, "n": -1.0, "s": "apples"},
		{"v": "true", "n": 2.5, "ok": true, "s": "app"},
		{"v": 0.0, "n": -0.5, "s": ""},
		{"v": false, "n": 0.1, "ok": false, "s": "b"},
		{"v": "", "n": 0.3, "s": "éclair"},
		{"v": "0", "n": 1e300, "ok": true},
		{"v": -1.5, "n": float64(1<<53 - 1), "s": "日本"},
		{"v": "-1.5", "n": float64(1 << 53), "s": "a%"},
		{"n": "1", "ok": "true", "s": 1.0},
		{"n": true, "ok": 1.0, "s": true},
		{"v": "null", "n": 5e-324, "ok": true, "s": "null"},
		{"v": 10.0, "n": -1e300, "ok": true, "s": "Zebra"},
		{"v": "10", "n": 9.0, "s": "2"},
		{"v": "9", "n": 1.0, "ok": false, "s": "10"},
		{"other": "x"},
		{"V": "1", "N": 1.0, "OK": true, "S": "apple"},
	} {
		all = append(all, sdk.Entry{ID: fmt.Sprintf("f%02d", i), Label: []string{"", "red", "green", "Red", "grün"}[i%5], Meta: m})
	}
	return marked(all)
}

// marked gives each entry a word of its own, a length and a vector. A query for all words then finds
// all entries by either leg, with clearly different scores, and each leg in another order.
func marked(all []sdk.Entry) []sdk.Entry {
	for i := range all {
		place := i / 2 // position in the order by vector
		if i%2 > 0 {
			place = len(all) - 1 - i/2
		}
		cos := 1 - (2*float64(place)+1)/float64(len(all))
		all[i].Text = fmt.Sprint("own", i, strings.Repeat(" filler", i))
		all[i].Vector = []float32{float32(cos), float32(math.Sqrt(1 - cos*cos)), 0, 0, 0, 0, 0, 0}
	}
	return all
}

// selects compares searches among n marked entries with each filter. One search finds everything that
// the filter selects, another the three best of each leg. A call has all filters, and queries without
// a filter.
func selects(n int, filters ...sdk.Filter) step {
	var words strings.Builder
	for i := range n {
		fmt.Fprint(&words, "own", i, " ")
	}
	queries := make([]sdk.Query, len(filters)+1)
	for i := range queries {
		queries[i] = sdk.Query{Text: words.String(), Vector: axis(0)}
		if i < len(filters) {
			queries[i].Filter = &filters[i]
		}
	}
	return func(c *collection) {
		r := ranking(sdk.ModeDense, weighted, n, n)
		r.Texts = false
		c.compare(r, queries...)
		if r = ranking(sdk.ModeDense, weighted, 3, 3); len(c.modes()) > 1 {
			c.compare(ranking(sdk.ModeLexical, weighted, n, n), queries...)
			r.Mode = sdk.ModeHybrid
		}
		c.compare(r, queries...)
	}
}

// oddValues puts each string into every field that can hold it, and filters for it.
func oddValues(all []string) []step {
	var entries []sdk.Entry
	var values []any
	for i, x := range all {
		values = append(values, x)
		if x != "" {
			entries = append(entries, sdk.Entry{ID: x, Label: x, Meta: sdk.Meta{"s": x}})
		} else {
			entries = append(entries, sdk.Entry{ID: fmt.Sprint("empty ", i), Meta: sdk.Meta{"s": ""}})
		}
	}
	fields, filters := []field{id, label, meta("s")}, []sdk.Filter{}
	for _, op := range []sdk.FilterOp{sdk.FilterIn, sdk.FilterPrefix, sdk.FilterLess, sdk.FilterGreaterEqual} {
		filters = append(filters, compared(op, fields, values)...)
	}
	for _, f := range fields {
		filters = append(filters, f.is(values[:len(all)/2]...), not(f.is(values...)))
	}
	return []step{filtered, put(marked(entries)...), commit(""), selects(len(entries), filters...)}
}

// oddKeys filters for values under each key.
func oddKeys(keys []string) []step {
	entries, filters := []sdk.Entry{{ID: "without metadata"}}, []sdk.Filter{}
	for i, key := range keys {
		entries = append(entries,
			sdk.Entry{ID: fmt.Sprint("s", i), Label: key, Meta: sdk.Meta{key: "here", "a key": "here"}}, sdk.Entry{ID: fmt.Sprint("n", i), Meta: sdk.Meta{key: float64(i)}})
		filters = append(filters, meta(key).is("here"), not(meta(key).is("here")), meta(key).is(float64(i)), meta(key).compare(sdk.FilterLess, float64(i)+1))
	}
	return []step{filtered, put(marked(entries)...), commit(""), selects(len(entries), filters...)}
}

// field is the left side of a comparison.
type field struct {
	field sdk.Field
	key   string
}

var (
	id    = field{field: sdk.FieldID}
	label = field{field: sdk.FieldLabel}
)

func meta(key string) field { return field{sdk.FieldMeta, key} }

// fieldsOf returns the fields of entries, with others added, and every distinct value.
func fieldsOf(entries []sdk.Entry, others ...field) (fields []field, values []any) {
	seenKeys, seen := map[string]bool{}, map[any]bool{}
	value := func(v any) {
		if !seen[v] {
			values = append(values, v)
		}
		seen[v] = true
	}
	fields = append([]field{id, label}, others...)
	for i, e := range entries {
		if i < 3 {
			value(e.ID)
		}
		value(e.Label)
		for _, key := range slices.Sorted(maps.Keys(e.Meta)) {
			if value(e.Meta[key]); !seenKeys[key] {
				seenKeys[key], fields = true, append(fields, meta(key))
			}
		}
	}
	return fields, values
}

// compared returns comparisons of each field with each value that the operator accepts.
func compared(op sdk.FilterOp, fields []field, values []any) (all []sdk.Filter) {
	for _, f := range fields {
		for _, v := range f.takes(op, values) {
			all = append(all, f.compare(op, v))
		}
	}
	return all
}

// takes returns the values with which an operator can compare the field.
func (f field) takes(op sdk.FilterOp, values []any) (some []any) {
	for _, v := range values {
		_, text := v.(string)
		_, truth := v.(bool)
		if text || f.field == sdk.FieldMeta && op != sdk.FilterPrefix && (!truth || op == sdk.FilterIn) {
			some = append(some, v)
		}
	}
	return some
}

func (f field) is(values ...any) sdk.Filter {
	return sdk.Filter{Op: sdk.FilterIn, Field: f.field, Key: f.key, Values: values}
}

func (f field) compare(op sdk.FilterOp, value any) sdk.Filter {
	return sdk.Filter{Op: op, Field: f.field, Key: f.key, Values: []any{value}}
}

func and(parts ...sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterAnd, Parts: parts} }
func or(parts ...sdk.Filter) sdk.Filter  { return sdk.Filter{Op: sdk.FilterOr, Parts: parts} }
func not(part sdk.Filter) sdk.Filter     { return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{part}} }

func negated(all []sdk.Filter) []sdk.Filter {
	for i := range all {
		all[i] = not(all[i])
	}
	return all
}

// deep returns a filter with the given number of levels.
func deep(levels int) sdk.Filter {
	f := label.is("red")
	for i := range levels - 1 {
		switch i % 3 {
		case 0:
			f = not(f)
		case 1:
			f = and(f)
		default:
			f = or(f)
		}
	}
	return f
}

// randomFilter draws a tree whose leaves are drawn from leaves.
func randomFilter(r *rand.Rand, leaves []sdk.Filter, depth int) sdk.Filter {
	if depth == 0 || r.IntN(4) == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	parts := make([]sdk.Filter, 1+r.IntN(3))
	for i := range parts {
		parts[i] = randomFilter(r, leaves, depth-1)
	}
	return []sdk.Filter{and(parts...), or(parts...), not(parts[0])}[r.IntN(3)]
}
