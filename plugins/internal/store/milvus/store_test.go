package milvus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// docs holds the rows of an external collection, and the corresponding entries.
type docs struct {
	entries []sdk.Entry
	columns []*schemapb.FieldData
}

const docsDimension = 8

// makeDocs creates random rows. Their keys are texts with odd characters, or numbers. The norm of each vector is
// scaled by up to a factor.
func makeDocs(t testing.TB, n int, numbers bool, stretch float32) docs {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	words := strings.Fields("refund order parcel tea milk invoice password delivery late broken please thanks account card")
	var d docs
	var ids, texts, labels, titles, langs []string
	var keys []int64
	var years []int32
	var rates []float32
	var public []bool
	var origins, dynamic []map[string]any
	var all [][]float32
	for i := range n {
		id := fmt.Sprintf("doc/%04d", (i*37)%n)
		if i%50 == 7 {
			id = fmt.Sprintf(`q"%d\n'ü漢%%_`, i)
		}
		key := int64(i*7919%10_007) - 5000
		if numbers {
			id = fmt.Sprint(key)
		}
		var text []string
		for range 3 + random.IntN(6) {
			text = append(text, words[random.IntN(len(words))])
		}
		vector := make([]float32, docsDimension)
		for j := range vector {
			vector[j] = float32(random.NormFloat64())
		}
		norm := float32(math.Sqrt(float64(dot(vector, vector))))
		for j := range vector {
			vector[j] *= (1 + stretch*random.Float32()) / norm
		}
		meta := sdk.Meta{
			"lang": []string{"en", "de", "fr"}[i%3], "year": float64(2000 + i%30), "rate": float64(float32(i) / 10), "public": i%2 == 0,
			"team": []string{"a", "b"}[i%2], "level": float64(i % 5), "color": []string{"red", "blue", "green"}[i%3], "size": float64(i) / 2,
		}
		if i%4 == 0 {
			delete(meta, "color")
			delete(meta, "level")
		}
		origin, rest := map[string]any{"deep": map[string]any{"k": i}}, map[string]any{"tags": []string{"x"}, "_own": "book"}
		for key, to := range map[string]map[string]any{"team": origin, "level": origin, "color": rest, "size": rest} {
			if v, ok := meta[key]; ok {
				to[key] = v
			}
		}
		ids, keys, texts, labels, titles = append(ids, id), append(keys, key), append(texts, strings.Join(text, " ")), append(labels, "intent "+fmt.Sprint(i%7)), append(titles, fmt.Sprint("Title ", i))
		langs, years, rates, public = append(langs, meta["lang"].(string)), append(years, int32(2000+i%30)), append(rates, float32(i)/10), append(public, i%2 == 0)
		origins, dynamic, all = append(origins, origin), append(dynamic, rest), append(all, vector)
		d.entries = append(d.entries, sdk.Entry{ID: id, Text: texts[i], Label: labels[i], Context: titles[i], Meta: meta, Vector: vector})
	}
	pk := strs("pk", ids)
	if numbers {
		pk = int64s("pk", keys)
	}
	d.columns = []*schemapb.FieldData{
		pk, strs("content", texts), strs("intent", labels), strs("title", titles), strs("lang", langs), int32s("year", years), float32s("rate", rates), bools("public", public),
		objects(t, "origin", origins), milvusVectors("embedding", all), objects(t, "", dynamic),
	}
	slices.SortFunc(d.entries, func(a, b sdk.Entry) int {
		if numbers {
			return cmp.Compare(number(a.ID), number(b.ID))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return d
}

func (d docs) entry(id string) sdk.Entry {
	return d.entries[slices.IndexFunc(d.entries, func(e sdk.Entry) bool { return e.ID == id })]
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func cosineOf(a, b []float32) float32 {
	return dot(a, b) / float32(math.Sqrt(float64(dot(a, a))*float64(dot(b, b))))
}

// docsSchema is the schema of a collection of docs.
func docsSchema(numbers bool, metric string, words bool) made {
	pk := field("pk", schemapb.DataType_VarChar)
	if numbers {
		pk = field("pk", schemapb.DataType_Int64)
	}
	m := made{dynamic: true, metrics: map[string]string{"embedding": metric}, fields: []*schemapb.FieldSchema{
		primary(pk), field("content", schemapb.DataType_VarChar, "max_length", "60000", "enable_analyzer", "true"), field("intent", schemapb.DataType_VarChar), field("title", schemapb.DataType_VarChar),
		field("lang", schemapb.DataType_VarChar), field("year", schemapb.DataType_Int32), field("rate", schemapb.DataType_Float), field("public", schemapb.DataType_Bool),
		field("origin", schemapb.DataType_JSON), field("embedding", schemapb.DataType_FloatVector, "dim", fmt.Sprint(docsDimension)),
	}}
	if words {
		sparse := field("bm25", schemapb.DataType_SparseFloatVector)
		sparse.IsFunctionOutput = true
		m.fields = append(m.fields, sparse)
		m.functions = []*schemapb.FunctionSchema{{Name: "words", Type: schemapb.FunctionType_BM25, InputFieldNames: []string{"content"}, OutputFieldNames: []string{"bm25"}}}
		m.metrics["bm25"] = "BM25"
	}
	return m
}

// TestAttached reads collections of another program on Milvus Lite.
func TestAttached(t *testing.T) { readsAttached(t, startEngine(t).config()) }

// TestAttachedElsewhere does the same on a running server; see TestConformanceElsewhere.
func TestAttachedElsewhere(t *testing.T) { readsAttached(t, elsewhere(t)) }

func elsewhere(t testing.TB) config {
	t.Helper()
	text := os.Getenv(configVariable)
	if text == "" {
		t.Skipf("%s is not set", configVariable)
	}
	var given struct{ Address, User, Password, CA string }
	must.Do(t, json.Unmarshal([]byte(text), &given))
	c := (&milvusEngine{t: t, address: cmp.Or(given.Address, "127.0.0.1:19530")}).config()
	c.User, c.Password, c.CA = given.User, given.Password, sdk.Path(given.CA)
	return c
}

// hasWords reports whether the server has functions and sparse vectors.
func hasWords() bool { return os.Getenv(denseOnlyVariable) == "" }

func readsAttached(t *testing.T, c config) {
	o := newOwner(t, c)
	for name, test := range map[string]struct {
		metric  string
		numbers bool
		stretch float32
		words   bool
	}{
		"cosine":       {metric: "COSINE", stretch: 3, words: true},
		"ip":           {metric: "IP", numbers: true},
		"l2_stretched": {metric: "L2", numbers: true, stretch: .2, words: true},
	} {
		t.Run(name, func(t *testing.T) {
			test.words = test.words && hasWords()
			d := makeDocs(t, 400, test.numbers, test.stretch)
			o.create(name, docsSchema(test.numbers, test.metric, test.words))
			o.insert(name, "", len(d.entries), d.columns...)
			before := o.rowsAndSchema(name)
			r, found := attach(t, c, entries.Arguments{Collection: name})
			must.Equal(t, "found", sdk.Attached{Name: name, Entries: 400, Dimension: docsDimension, Lexical: test.words, Labels: true}, found, cmpopts.IgnoreFields(found, "ID", "Fields", "Notes"))
			t.Run("scan", func(t *testing.T) { sameScan(t, r, name, d) })
			t.Run("get", func(t *testing.T) { sameGet(t, r, name, d) })
			t.Run("dense", func(t *testing.T) { sameDense(t, r, name, d, test.metric == "COSINE" || test.stretch == 0) })
			t.Run("filters", func(t *testing.T) { sameFilters(t, r, name, d) })
			if test.words {
				t.Run("words", func(t *testing.T) { findsWords(t, r, name, d) })
			}
			if after := o.rowsAndSchema(name); after != before {
				t.Errorf("the collection was changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func sameScan(t *testing.T, r *reader, name string, d docs) {
	for _, limit := range []int{0, 1, 150} {
		var all []sdk.Entry
		scan := sdk.Scan{Limit: limit, Texts: true, Vectors: true}
		for {
			page, err := r.Scan(t.Context(), name, scan)
			must.Do(t, err)
			all = append(all, page.Entries...)
			if scan.After = page.Next; page.Next == "" || len(page.Entries) == 0 {
				break
			}
			if limit == 1 && len(all) == 25 { // one at a time takes long
				break
			}
		}
		if diff := gocmp.Diff(d.entries[:len(all)], all, cmpopts.EquateApprox(1e-6, 0)); diff != "" || limit != 1 && len(all) != len(d.entries) {
			t.Errorf("in pages of %d, %d entries (-want +got):\n%s", limit, len(all), diff)
		}
	}
	page, err := r.Scan(t.Context(), name, sdk.Scan{Labels: []string{"intent 3", "intent 5"}})
	want := slices.DeleteFunc(slices.Clone(d.entries), func(e sdk.Entry) bool { return e.Label != "intent 3" && e.Label != "intent 5" })
	if err != nil || len(page.Entries) != len(want) {
		t.Errorf("of two labels %d entries, %v; want %d", len(page.Entries), err, len(want))
	}
}

func sameGet(t *testing.T, r *reader, name string, d docs) {
	var ids []string
	for _, e := range d.entries {
		ids = append(ids, e.ID)
	}
	ids = append(ids, "not there", ids[0], "07")
	got, err := r.Get(t.Context(), name, ids)
	must.Do(t, err)
	want := append(slices.Clone(d.entries), sdk.Entry{}, d.entries[0], sdk.Entry{})
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(sdk.Entry{}, "Vector")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sameDense compares the ten best results with all cosines.
func sameDense(t *testing.T, r *reader, name string, d docs, exact bool) {
	var queries []sdk.Query
	for i := range 20 {
		queries = append(queries, sdk.Query{Text: "tea", Vector: d.entries[i*19].Vector})
	}
	got, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 10}, queries)
	must.Do(t, err)
	for i, q := range queries {
		want := slices.Clone(d.entries)
		slices.SortFunc(want, func(a, b sdk.Entry) int {
			return cmp.Or(cmp.Compare(cosineOf(b.Vector, q.Vector), cosineOf(a.Vector, q.Vector)), cmp.Compare(a.ID, b.ID))
		})
		same := 0
		for j, h := range got[i].Dense {
			e := d.entry(h.ID)
			if h.Entry.ID != e.ID || h.Entry.Label != e.Label {
				t.Errorf("found %+v, want %+v", h.Entry, e)
			}
			if math.Abs(float64(h.Dense-cosineOf(e.Vector, q.Vector))) > 1e-5 {
				t.Errorf("query %d, entry %q: score %v, cosine %v", i, h.ID, h.Dense, cosineOf(e.Vector, q.Vector))
			}
			if want[j].ID == h.ID {
				same++
			}
		}
		if len(got[i].Dense) != 10 || exact && same != 10 || same < 5 {
			t.Errorf("query %d: %d found, %d as by the cosines of all", i, len(got[i].Dense), same)
		}
	}
}

// sameFilters compares the selections of filters with Filter.Match, in Go.
func sameFilters(t *testing.T, r *reader, name string, d docs) {
	meta := func(key string, op sdk.FilterOp, values ...any) sdk.Filter {
		return sdk.Filter{Op: op, Field: sdk.FieldMeta, Key: key, Values: values}
	}
	not := func(f sdk.Filter) sdk.Filter { return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{f}} }
	label := sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel, Values: []any{"intent 2", "intent 4"}}
	some := sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{d.entries[3].ID, d.entries[200].ID, d.entries[399].ID, "nothing", "line\n9\ttab"}}
	filters := []sdk.Filter{
		label, some, {Op: sdk.FilterPrefix, Field: sdk.FieldID, Values: []any{"doc/01"}}, {Op: sdk.FilterLess, Field: sdk.FieldID, Values: []any{"doc/0200"}},
		{Op: sdk.FilterGreaterEqual, Field: sdk.FieldLabel, Values: []any{"intent 5"}},
		meta("lang", sdk.FilterIn, "en"), meta("lang", sdk.FilterIn, "en", "fr", 3.0), meta("lang", sdk.FilterPrefix, "d"), meta("lang", sdk.FilterLess, "en"), meta("lang", sdk.FilterIn), meta("lang", sdk.FilterLess, 5.0),
		meta("year", sdk.FilterIn, 2003.0), meta("year", sdk.FilterIn, 2003.0, 2004.5, "2005"), meta("year", sdk.FilterGreater, 2020.5), meta("year", sdk.FilterLessEqual, 2010.0), meta("year", sdk.FilterLess, 1e10), meta("year", sdk.FilterGreaterEqual, math.Inf(-1)),
		meta("rate", sdk.FilterGreater, 20.1), meta("rate", sdk.FilterIn, 0.5, float64(float32(0.1))), meta("rate", sdk.FilterLess, 12.5), meta("rate", sdk.FilterGreaterEqual, float64(float32(0.3))),
		meta("public", sdk.FilterIn, true), meta("public", sdk.FilterIn, false, "x"), meta("public", sdk.FilterIn, "true"),
		meta("team", sdk.FilterIn, "a"), meta("level", sdk.FilterIn, 3.0), meta("level", sdk.FilterGreater, 1.5), meta("level", sdk.FilterIn, "3"),
		meta("color", sdk.FilterIn, "red"), meta("color", sdk.FilterPrefix, "b"), meta("size", sdk.FilterLess, 20.0), meta("size", sdk.FilterIn, 3.0, 3.5), meta("nothing", sdk.FilterIn, "x"), meta("_own", sdk.FilterIn, "book"), meta("deep", sdk.FilterIn, "x"),
		{Op: sdk.FilterAnd, Parts: []sdk.Filter{label, meta("year", sdk.FilterGreater, 2010.0), not(meta("color", sdk.FilterIn, "red"))}},
		{Op: sdk.FilterOr, Parts: []sdk.Filter{meta("level", sdk.FilterIn, 2.0), meta("year", sdk.FilterIn, 2001.0)}},
	}
	for _, f := range slices.Clone(filters) {
		filters = append(filters, not(f))
	}
	var queries []sdk.Query
	for i := range filters {
		must.Do(t, filters[i].Check())
		queries = append(queries, sdk.Query{Vector: d.entries[0].Vector, Filter: &filters[i]})
	}
	all, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 400}, queries)
	must.Do(t, err)
	few, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, queries)
	must.Do(t, err)
	for i, f := range filters {
		want := map[string]bool{}
		for _, e := range d.entries {
			if f.Match(e.ID, e.Label, e.Meta) {
				want[e.ID] = true
			}
		}
		for _, h := range all[i].Dense {
			if !want[h.ID] {
				t.Errorf("%s selects %q", f.String(), h.ID)
			}
		}
		if len(all[i].Dense) != len(want) || len(few[i].Dense) != min(3, len(want)) {
			t.Errorf("%s selects %d entries, want %d, and %d of 3", f.String(), len(all[i].Dense), len(want), len(few[i].Dense))
		}
	}
}

// findsWords searches by words, and with both legs.
func findsWords(t *testing.T, r *reader, name string, d docs) {
	german := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldMeta, Key: "lang", Values: []any{"de"}}
	queries := []sdk.Query{{Text: "late delivery", Vector: d.entries[5].Vector}, {Text: "xyzzy", Vector: d.entries[6].Vector}, {Text: "tea", Vector: d.entries[7].Vector, Filter: german}}
	lexical, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 30}, queries)
	must.Do(t, err)
	if len(lexical[1].Lexical) != 0 || len(lexical[0].Lexical) != 30 || len(lexical[2].Lexical) == 0 || lexical[0].Dense != nil {
		t.Errorf("found %d, %d and %d entries", len(lexical[0].Lexical), len(lexical[1].Lexical), len(lexical[2].Lexical))
	}
	last := float32(math.Inf(1))
	for _, h := range lexical[0].Lexical {
		if e := d.entry(h.ID); h.Lexical > last || h.Lexical <= 0 || !strings.Contains(e.Text, "late") && !strings.Contains(e.Text, "delivery") {
			t.Errorf("entry %q with %q has the score %v after %v", h.ID, e.Text, h.Lexical, last)
		}
		last = h.Lexical
	}
	for _, h := range lexical[2].Lexical {
		if e := d.entry(h.ID); e.Meta["lang"] != "de" || !strings.Contains(e.Text, "tea") {
			t.Errorf("%+v is found", e)
		}
	}
	both, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 30}, queries)
	must.Do(t, err)
	for i, hits := range both {
		scores := map[string]float32{}
		for _, h := range lexical[i].Lexical {
			scores[h.ID] = h.Lexical
		}
		for _, h := range append(slices.Clone(hits.Dense), hits.Lexical...) {
			e := d.entry(h.ID)
			if math.Abs(float64(h.Dense-cosineOf(e.Vector, queries[i].Vector))) > 1e-5 {
				t.Errorf("query %d: entry %q has the dense score %v, want %v", i, h.ID, h.Dense, cosineOf(e.Vector, queries[i].Vector))
			}
			if want, ok := scores[h.ID]; ok && math.Abs(float64(want-h.Lexical)) > 1e-5 {
				t.Errorf("query %d: entry %q has the lexical score %v, want %v", i, h.ID, h.Lexical, want)
			}
		}
	}
}
