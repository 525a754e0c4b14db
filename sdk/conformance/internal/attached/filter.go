package attached

import (
	"math"

	"github.com/racflow/racflow/sdk"
)

func is(f sdk.Field, key string, values ...any) sdk.Filter {
	return sdk.Filter{Op: sdk.FilterIn, Field: f, Key: key, Values: values}
}

func compare(op sdk.FilterOp, key string, value any) sdk.Filter {
	return sdk.Filter{Op: op, Field: sdk.FieldMeta, Key: key, Values: []any{value}}
}

func not(f sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{f}} }

func all(parts ...sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterAnd, Parts: parts} }

func anyOf(parts ...sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterOr, Parts: parts} }

// filterTable are filters on every part that a row of the suite has, of every type, and on some
// that it lacks: a column of a fixed type is compared with values of others, too.
var filterTable = func() []sdk.Filter {
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
		all(), anyOf(), all(is(meta, "lang", "de"), year(sdk.FilterGreaterEqual, 2000)), anyOf(is(label, "", "refund"), not(open)),
		not(anyOf(is(meta, "lang", "de"), all(open, not(is(label, "", "parcel"))))), all(is(meta, "year", "2000"), is(meta, "missing", true)),
	}
}()

func (v *view) filters() {
	if !v.Stage.Filters {
		v.Skipf("the stage does not declare sdk.Filters, so it gets no filter")
	}
	q := queries(1)[0]
	asked := make([]sdk.Query, len(filterTable))
	for i := range filterTable {
		asked[i] = sdk.Query{Vector: q.Vector, Filter: &filterTable[i]}
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
