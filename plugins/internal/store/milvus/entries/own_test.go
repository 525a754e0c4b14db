package entries

import (
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

func compare(op sdk.FilterOp, field sdk.Field, key string, values ...any) sdk.Filter {
	return sdk.Filter{Op: op, Field: field, Key: key, Values: values}
}

func combine(op sdk.FilterOp, parts ...sdk.Filter) sdk.Filter {
	return sdk.Filter{Op: op, Parts: parts}
}

// own returns a collection of racflow's own.
func own(t *testing.T) *Collection {
	t.Helper()
	made, err := table.New(nil, table.Options{}, "c", sdk.Schema{Dimension: 1, Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Own(made)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTranslate(t *testing.T) {
	label := func(values ...any) sdk.Filter { return compare(sdk.FilterIn, sdk.FieldLabel, "", values...) }
	meta := func(op sdk.FilterOp, values ...any) sdk.Filter { return compare(op, sdk.FieldMeta, "n", values...) }
	not := func(f sdk.Filter) sdk.Filter { return combine(sdk.FilterNot, f) }
	for name, test := range map[string]struct {
		filter sdk.Filter
		want   string // "all" and "none" stand for themselves
	}{
		"equal":                    {label("a"), `label in ["a"]`},
		"in":                       {label("a", "b"), `label in ["a","b"]`},
		"not in":                   {not(label("a", "b")), `label not in ["a","b"]`},
		"not in nothing":           {not(label()), "all"},
		"not not":                  {not(not(label("a"))), "all"},
		"metadata that differs":    {not(meta(sdk.FilterIn, "x")), "all"}, // engines do not agree on missing keys
		"in nothing":               {label(), "none"},
		"quotes and backslashes":   {label(`a"\`), `label in ["a\"\\"]`},
		"letters and signs":        {label("ü 漢 %_'"), `label in ["ü 漢 %_'"]`},
		"line feed":                {label("a\nb"), "all"},
		"tab among others":         {label("a", "\t"), "all"},
		"order":                    {compare(sdk.FilterLess, sdk.FieldID, "", "m"), `id < "m"`},
		"not order":                {not(compare(sdk.FilterLess, sdk.FieldID, "", "m")), "all"},
		"prefix":                   {compare(sdk.FilterPrefix, sdk.FieldID, "", "doc-1/"), `id like "doc-1/%"`},
		"prefix of a pattern":      {compare(sdk.FilterPrefix, sdk.FieldID, "", "100%"), "all"},
		"and":                      {combine(sdk.FilterAnd, label("a"), meta(sdk.FilterGreater, 2.0)), `(label in ["a"] and meta["n"] > 2.0)`},
		"or":                       {combine(sdk.FilterOr, label("a"), label("b")), `(label in ["a"] or label in ["b"])`},
		"and not":                  {combine(sdk.FilterAnd, label("a"), not(label("b"))), `(label in ["a"] and label not in ["b"])`},
		"and with too hard a part": {combine(sdk.FilterAnd, label("a"), label("\t")), `label in ["a"]`},
		"or with too hard a part":  {combine(sdk.FilterOr, label("a"), label("\t")), "all"},
		"and nothing":              {combine(sdk.FilterAnd), "all"},
		"or nothing":               {combine(sdk.FilterOr), "none"},
		"and none":                 {combine(sdk.FilterAnd, label("a"), label()), "none"},
		"whole number":             {meta(sdk.FilterIn, 3.0), `meta["n"] == 3.0`},
		"negative":                 {meta(sdk.FilterLessEqual, -0.5), `meta["n"] <= -0.5`},
		"negative zero":            {meta(sdk.FilterIn, math.Copysign(0, -1)), `meta["n"] == 0.0`},
		"huge number":              {meta(sdk.FilterIn, 1e300), "all"},
		"infinity":                 {meta(sdk.FilterLess, math.Inf(1)), "all"},
		"bool":                     {meta(sdk.FilterIn, true), `meta["n"] == true`},
		"values of all types":      {meta(sdk.FilterIn, "x", 1.0, false), `(meta["n"] == "x" or (meta["n"] == 1.0 or meta["n"] == false))`},
		"metadata in nothing":      {meta(sdk.FilterIn), "none"},
		"a key that is a path":     {compare(sdk.FilterIn, sdk.FieldMeta, "a/b", "x"), "all"},
		"a key with a quote":       {compare(sdk.FilterIn, sdk.FieldMeta, `a"]`, "x"), "all"},
	} {
		if err := test.filter.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := own(t).condition(&test.filter)
		got := c.Expr
		switch {
		case c.None:
			got = "none"
		case got == "":
			got = "all"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if c := own(t).condition(nil); c != (table.Condition{}) {
		t.Errorf("no filter: %+v", c)
	}
}

// A chain of conditions must not nest as deep as it is long, and nothing may be in upper case.
func TestLongChains(t *testing.T) {
	var parts []sdk.Filter
	for range 1000 {
		parts = append(parts, compare(sdk.FilterGreater, sdk.FieldID, "", "m"))
	}
	f := combine(sdk.FilterOr, parts...)
	c := own(t).condition(&f)
	depth, deepest := 0, 0
	for _, r := range c.Expr {
		switch r {
		case '(':
			depth++
			deepest = max(deepest, depth)
		case ')':
			depth--
		}
	}
	if strings.Count(c.Expr, " or ") != 999 || deepest > 10 || c.Expr != strings.ToLower(c.Expr) {
		t.Errorf("%d deep: %.100s", deepest, c.Expr)
	}
	for range 8 {
		parts = append(parts, parts...)
	}
	f = combine(sdk.FilterOr, parts[:100_000]...)
	if c := own(t).condition(&f); c != (table.Condition{}) {
		t.Errorf("an expression of %d bytes is sent", len(c.Expr))
	}
}
