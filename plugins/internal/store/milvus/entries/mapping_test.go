package entries

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// jsonRow returns a row with a JSON field.
func jsonRow(field, text string) *table.ReplyRow {
	data := &schemapb.FieldData{FieldName: field, Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_JsonData{JsonData: &schemapb.JSONArray{Data: [][]byte{[]byte(text)}}}}}}
	r, err := table.ReplyRows([]*schemapb.FieldData{data}, nil, field)
	if err != nil {
		panic(err)
	}
	return r[0]
}

func TestPlaces(t *testing.T) {
	d := testDescription()
	d.Fields = append(d.Fields, &schemapb.FieldSchema{Name: dynamicField, DataType: schemapb.DataType_JSON, IsDynamic: true})
	for text, want := range map[string]struct {
		field, key string
		path       []string
	}{
		"lang":                       {"lang", "lang", nil},
		"origin":                     {"origin", "origin", nil},
		`origin["team"]`:             {"origin", "team", []string{"team"}},
		`origin["a"]["b \" ü"]`:      {"origin", `b " ü`, []string{"a", `b " ü`}},
		"color":                      {dynamicField, "color", []string{"color"}},
		`$meta["origin"]["team"]`:    {dynamicField, "team", []string{"origin", "team"}},
		"metadata.with.dots":         {dynamicField, "metadata.with.dots", []string{"metadata.with.dots"}},
		`a name with [no] quotes[0]`: {dynamicField, `a name with [no] quotes[0]`, []string{`a name with [no] quotes[0]`}},
	} {
		p := must.Get(d.find("fields.text", text))(t)
		must.Equal(t, text+": field, path, key, as text", []any{want.field, want.path, want.key, text}, []any{p.Field.GetName(), p.path, p.key(), p.String()}, cmpopts.EquateEmpty())
	}
	for _, text := range []string{`lang["a"]`, `nothing["a"]`} {
		if p, err := d.find("fields.text", text); sdk.CodeOf(err) != sdk.CodeInvalid {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

// Parts are found by type and usual names, first in fields, then in members that rows have.
func TestParts(t *testing.T) {
	d := testDescription()
	d.Fields = slices.DeleteFunc(d.Fields, func(f *schemapb.FieldSchema) bool { return f.GetName() == "text" || f.GetName() == "label" })
	d.Fields = append(d.Fields, &schemapb.FieldSchema{Name: dynamicField, DataType: schemapb.DataType_JSON, IsDynamic: true})
	first := jsonRow(dynamicField, `{"page_content": "a", "intent": 7, "title": null, "lang": "xx", "size": 5, "_own": "x", "list": [1]}`)
	m := testMapping(t, d, Fields{}, first)
	if m.text.String() != "page_content" || m.Label.String() != "intent" || m.context != nil || m.ID.String() != "number" {
		t.Errorf("found %+v", m.Found)
	}
	e := m.entry(first, true)
	if diff := cmp.Diff(sdk.Entry{Text: "a", Label: "7", Meta: sdk.Meta{"lang": "xx", "size": 5.0}}, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(m.Notes, "Left out, for their types: tags (Array).") {
		t.Errorf("notes %q", m.Notes)
	}
	m = testMapping(t, testDescription(), Fields{Text: "lang", Context: `origin["team"]`, Meta: []string{"year", "origin"}}, jsonRow("origin", `{"other": 1}`))
	if m.text.String() != "lang" || m.Label.String() != "label" || len(m.meta) != 2 || len(m.Notes) != 3 {
		t.Errorf("found %+v, notes %q", m.Found, m.Notes)
	}
	if _, err := newMapping(testDescription(), Fields{ID: "rate"}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a float as id gives %v", err)
	}
	if err := testMapping(t, testDescription(), Fields{}).findMeta(testDescription(), []string{"year", `origin["year"]`}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("two places of one key give %v", err)
	}
}

func TestTexts(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{{"a", "a"}, {int64(-5), "-5"}, {12.0, "12"}, {1e21, "1000000000000000000000"}, {true, "true"}, {nil, ""}, {[]any{1}, ""}} {
		if got := textOf(test.value); got != test.want {
			t.Errorf("%v: %q, want %q", test.value, got, test.want)
		}
	}
}
