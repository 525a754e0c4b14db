package entries

import (
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// testDescription returns a schema with a field of each type that filters know.
func testDescription() *Schema {
	d := &Schema{Name: "docs", Indexes: map[string]map[string]string{"vector": {"metric_type": "COSINE"}}}
	for name, typ := range map[string]schemapb.DataType{
		"number": schemapb.DataType_Int64, "label": schemapb.DataType_VarChar, "lang": schemapb.DataType_VarChar, "year": schemapb.DataType_Int32, "rate": schemapb.DataType_Float,
		"weight": schemapb.DataType_Double, "public": schemapb.DataType_Bool, "origin": schemapb.DataType_JSON, "text": schemapb.DataType_VarChar, "vector": schemapb.DataType_FloatVector,
		"tags": schemapb.DataType_Array,
	} {
		d.Fields = append(d.Fields, &schemapb.FieldSchema{Name: name, DataType: typ, IsPrimaryKey: name == "number"})
	}
	return d
}

func testMapping(t *testing.T, d *Schema, given Fields, first ...*table.ReplyRow) *Mapping {
	t.Helper()
	m, err := newMapping(d, given)
	if err == nil {
		err = m.findParts(d, given, first)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The sent expression selects everything that the filter selects, and as little else as engines agree on.
func TestCondition(t *testing.T) {
	m := testMapping(t, testDescription(), Fields{})
	nullable := testDescription()
	nullable.field("label").Nullable, nullable.field("lang").Nullable = true, true
	nulls := testMapping(t, nullable, Fields{})
	compare := func(f sdk.Field, key string, op sdk.FilterOp, values ...any) sdk.Filter {
		return sdk.Filter{Op: op, Field: f, Key: key, Values: values}
	}
	meta := func(key string, op sdk.FilterOp, values ...any) sdk.Filter {
		return compare(sdk.FieldMeta, key, op, values...)
	}
	not := func(f sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{f}} }
	for name, test := range map[string]struct {
		m      *Mapping
		filter sdk.Filter
		want   string // "all" and "none" stand for themselves
	}{
		"a number as id":           {m, compare(sdk.FieldID, "", sdk.FilterIn, "5", "-7"), "number in [5,-7]"},
		"no number as id":          {m, compare(sdk.FieldID, "", sdk.FilterIn, "05", "+5", "x", "99999999999999999999"), "none"},
		"order of numbers as text": {m, compare(sdk.FieldID, "", sdk.FilterLess, "5"), "all"},
		"not a label":              {m, not(compare(sdk.FieldLabel, "", sdk.FilterIn, "a")), `label not in ["a"]`},
		"not a label, or NULL":     {nulls, not(compare(sdk.FieldLabel, "", sdk.FilterIn, "a")), "all"},
		"label that may be NULL":   {nulls, compare(sdk.FieldLabel, "", sdk.FilterIn, "a"), `label in ["a"]`},
		"NULL is the empty label":  {nulls, compare(sdk.FieldLabel, "", sdk.FilterIn, "a", ""), "all"},
		"NULL is less":             {nulls, compare(sdk.FieldLabel, "", sdk.FilterLess, "a"), "all"},
		"text in several places":   {nulls, meta("lang", sdk.FilterIn, "en", 5.0), `(lang in ["en"] or (origin["lang"] == "en" or origin["lang"] == 5.0))`},
		"unknown key":              {testMapping(t, testDescription(), Fields{Meta: []string{"lang"}}), meta("year", sdk.FilterIn, 5.0), "none"},
		"text alone":               {testMapping(t, testDescription(), Fields{Meta: []string{"lang"}}), meta("lang", sdk.FilterIn, "en", 5.0), `lang in ["en"]`},
		"member alone":             {testMapping(t, testDescription(), Fields{Meta: []string{`origin["a"]["b"]`}}), meta("b", sdk.FilterGreater, 2.0), `origin["a"]["b"] > 2.0`},
		"text":                     {m, meta("lang", sdk.FilterIn, "en", 5.0), `lang in ["en"]`},
		"whole":                    {testMapping(t, testDescription(), Fields{Meta: []string{"year"}}), meta("year", sdk.FilterIn, 2000.0, 2000.5, "x"), "year in [2000]"},
		"whole below a half":       {testMapping(t, testDescription(), Fields{Meta: []string{"year"}}), meta("year", sdk.FilterLess, 2000.5), "all"},
		"whole above a half":       {testMapping(t, testDescription(), Fields{Meta: []string{"year"}}), meta("year", sdk.FilterGreater, -2000.5), "all"},
		"whole, far off":           {testMapping(t, testDescription(), Fields{Meta: []string{"year"}}), meta("year", sdk.FilterLess, 1e300), "all"},
		"32 bits":                  {testMapping(t, testDescription(), Fields{Meta: []string{"rate"}}), meta("rate", sdk.FilterGreater, 0.5), "all"},
		"64 bits":                  {testMapping(t, testDescription(), Fields{Meta: []string{"weight"}}), meta("weight", sdk.FilterGreater, 0.1), "weight > 0.1"},
		"bool":                     {testMapping(t, testDescription(), Fields{Meta: []string{"public"}}), meta("public", sdk.FilterIn, true, "true"), "public == true"},
		"prefix of a number":       {testMapping(t, testDescription(), Fields{Meta: []string{"year"}}), meta("year", sdk.FilterPrefix, "20"), "none"},
		"prefix of a bool":         {testMapping(t, testDescription(), Fields{Meta: []string{"public"}}), meta("public", sdk.FilterPrefix, "t"), "none"},
	} {
		if err := test.filter.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := test.m.condition(&test.filter)
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
}
