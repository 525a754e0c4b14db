package sdk_test

import (
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func field(f sdk.Field, op sdk.FilterOp, values ...any) sdk.Filter {
	return sdk.Filter{Op: op, Field: f, Values: values}
}

func meta(key string, op sdk.FilterOp, values ...any) sdk.Filter {
	return sdk.Filter{Op: op, Field: sdk.FieldMeta, Key: key, Values: values}
}

func combine(op sdk.FilterOp, parts ...sdk.Filter) sdk.Filter {
	return sdk.Filter{Op: op, Parts: parts}
}

func TestFilterMatch(t *testing.T) {
	lang := meta("lang", sdk.FilterIn, "en")
	for _, tt := range []struct {
		filter sdk.Filter
		text   string
		want   bool // of the entry faq-1, label refund, lang en, year 2020, public true
	}{
		{lang, `meta["lang"] == "en"`, true},
		{combine(sdk.FilterNot, lang), `not (meta["lang"] == "en")`, false},
		{meta("lang", sdk.FilterIn, "de", "en"), `meta["lang"] in ["de", "en"]`, true},
		{meta("lang", sdk.FilterIn), `meta["lang"] in []`, false},
		{meta("lang", sdk.FilterIn, 5.0), `meta["lang"] == 5`, false},
		{meta("lang", sdk.FilterLess, "f"), `meta["lang"] < "f"`, true},
		{meta("lang", sdk.FilterGreaterEqual, "en"), `meta["lang"] >= "en"`, true},
		{meta("lang", sdk.FilterPrefix, "e"), `meta["lang"] startsWith "e"`, true},
		{meta("lang", sdk.FilterPrefix, "x"), `meta["lang"] startsWith "x"`, false},
		{meta("year", sdk.FilterGreater, 2020.0), `meta["year"] > 2020`, false},
		{meta("year", sdk.FilterLessEqual, 2020.5), `meta["year"] <= 2020.5`, true},
		{meta("year", sdk.FilterLess, "3000"), `meta["year"] < "3000"`, false},
		{meta("year", sdk.FilterLess, math.Inf(1)), `meta["year"] < +Inf`, true},
		{meta("public", sdk.FilterIn, true), `meta["public"] == true`, true},
		{meta("public", sdk.FilterIn, "true"), `meta["public"] == "true"`, false},
		{meta("missing", sdk.FilterIn, ""), `meta["missing"] == ""`, false},
		{combine(sdk.FilterNot, meta("missing", sdk.FilterIn, "x")), `not (meta["missing"] == "x")`, true},
		{combine(sdk.FilterNot, meta("missing", sdk.FilterLess, 1.0)), `not (meta["missing"] < 1)`, true},
		{field(sdk.FieldLabel, sdk.FilterIn, "refund", "track"), `label in ["refund", "track"]`, true},
		{field(sdk.FieldID, sdk.FilterPrefix, "faq-"), `id startsWith "faq-"`, true},
		{combine(sdk.FilterAnd), `true`, true},
		{combine(sdk.FilterOr), `false`, false},
		{combine(sdk.FilterAnd, lang, field(sdk.FieldID, sdk.FilterIn, "x")), `(meta["lang"] == "en" and id == "x")`, false},
		{combine(sdk.FilterOr, lang, field(sdk.FieldID, sdk.FilterIn, "x")), `(meta["lang"] == "en" or id == "x")`, true},
	} {
		if err := tt.filter.Check(); err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := tt.filter.String(); got != tt.text {
			t.Errorf("got %s, want %s", got, tt.text)
		}
		entry := sdk.Meta{"lang": "en", "year": 2020.0, "public": true}
		if got := tt.filter.Match("faq-1", "refund", entry); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.text, got, tt.want)
		}
	}
	var none *sdk.Filter
	if !none.Match("a", "", nil) || none.String() != "true" {
		t.Error("no filter selects all")
	}
}

func TestFilterCheck(t *testing.T) {
	deep := field(sdk.FieldLabel, sdk.FilterIn, "x")
	for range sdk.MaxFilterDepth - 1 {
		deep = combine(sdk.FilterNot, deep)
	}
	if err := deep.Check(); err != nil {
		t.Errorf("%d deep: %v", sdk.MaxFilterDepth, err)
	}
	lang := meta("lang", sdk.FilterIn, "en")
	withParts, withValues, withKey := lang, combine(sdk.FilterAnd), field(sdk.FieldID, sdk.FilterIn, "x")
	withParts.Parts, withValues.Values, withKey.Key = []sdk.Filter{lang}, []any{"x"}, "k"
	for want, filter := range map[string]sdk.Filter{
		"deep":            combine(sdk.FilterNot, deep),
		"type 0 with 0":   {},
		"type 3 with 0":   combine(sdk.FilterNot),
		"type 3 with 2":   combine(sdk.FilterNot, lang, lang),
		"and 1 values":    withValues,
		"type 4 with":     withParts,
		"with field 1":    withKey,
		"type 99":         meta("x", 99, "y"),
		"field 0":         field(0, sdk.FilterIn, "x"),
		"field 9":         field(9, sdk.FilterIn, "x"),
		"and 2 values":    meta("x", sdk.FilterLess, 1.0, 2.0),
		"and 0 values":    meta("x", sdk.FilterPrefix),
		"with a int":      meta("x", sdk.FilterIn, 1),
		"with a <nil>":    meta("x", sdk.FilterIn, nil),
		"NaN":             meta("x", sdk.FilterLess, math.NaN()),
		"it is a string":  field(sdk.FieldLabel, sdk.FilterIn, 5.0),
		"< does not go":   meta("x", sdk.FilterLess, true),
		"startsWith does": combine(sdk.FilterOr, lang, meta("x", sdk.FilterPrefix, 5.0)),
	} {
		if err := filter.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
