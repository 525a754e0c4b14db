package milvus

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A query without a filter and one with a filter that the server cannot check are sent together. The filter still
// applies.
func TestAttachedMixedFilters(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	d := makeDocs(t, 100, true, 0)
	o.create("mixed", docsSchema(true, "COSINE", true))
	o.insert("mixed", "", 100, d.columns...)
	r, _ := attach(t, c, entries.Arguments{Collection: "mixed"})
	red := sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldMeta, Key: "color", Values: []any{"red"}}
	queries := []sdk.Query{{Vector: d.entries[0].Vector}, {Vector: d.entries[0].Vector, Filter: &sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{red}}}}
	hits, err := r.Search(t.Context(), "mixed", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 100}, queries)
	must.Do(t, err)
	want := 0
	for _, e := range d.entries {
		if !red.Match(e.ID, e.Label, e.Meta) {
			want++
		}
	}
	if want == 100 || len(hits[0].Dense) != 100 || len(hits[1].Dense) != want {
		t.Errorf("found %d of 100 and %d of %d", len(hits[0].Dense), len(hits[1].Dense), want)
	}
	for _, text := range []string{"\xff\xfe", "", "\x00", strings.Repeat("tea ", 20_000)} {
		_, err := r.Search(t.Context(), "mixed", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 10}, []sdk.Query{{Text: text}})
		if err != nil {
			t.Errorf("the text %.9q gives %v", text, err)
		}
	}
}

// If no literal can contain the keys, rows are found as usual. A score that cannot be requested is not made up, and a
// scan says why it ends.
func TestAttachedOddKeys(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	for _, metric := range []string{"COSINE", "L2"} {
		m := docsSchema(false, metric, true)
		m.dynamic, m.fields = false, append(m.fields[:2:2], m.fields[len(m.fields)-2:]...) // pk, content, embedding, bm25
		m.fields[2].TypeParams = keyValues("dim", "2")
		o.create(metric, m)
		o.insert(metric, "", 3, strs("pk", []string{"a\nb", "a\nc", "\ta"}), strs("content", []string{"tea tea", "tea milk", "milk"}), milvusVectors("embedding", [][]float32{{1, 0}, {0, 1}, {.8, .6}}))
		r, _ := attach(t, c, entries.Arguments{Collection: metric})
		hits, err := r.Search(t.Context(), metric, sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 1}, []sdk.Query{{Text: "milk", Vector: []float32{0, 1}}})
		must.Do(t, err)
		if h := hits[0].Dense; len(h) != 1 || h[0].ID != "a\nc" || h[0].Dense != 1 || h[0].Lexical == 0 {
			t.Errorf("%s: %+v", metric, h)
		}
		if _, err := r.Scan(t.Context(), metric, sdk.Scan{After: "a\nb"}); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "characters that no expression") {
			t.Errorf("%s: a scan gives %v", metric, err)
		}
	}
}

// A zero vector has cosine 0, in any position.
func TestAttachedZeroVectors(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	for _, metric := range []string{"COSINE", "IP", "L2"} {
		for _, zero := range []int{0, 29} {
			name := fmt.Sprintf("%s_%d", metric, zero)
			o.create(name, made{metrics: map[string]string{"vector": metric}, fields: []*schemapb.FieldSchema{
				primary(field("id", schemapb.DataType_Int64)), field("text", schemapb.DataType_VarChar), field("vector", schemapb.DataType_FloatVector, "dim", "2"),
			}})
			want := map[string]float64{}
			var keys []int64
			var texts []string
			var all [][]float32
			for i := range 30 {
				x := []float32{float32(math.Cos(float64(i))), float32(math.Sin(float64(i)))}
				want[fmt.Sprint(i)] = math.Cos(float64(i))
				if i == zero {
					x, want[fmt.Sprint(i)] = []float32{0, 0}, 0
				}
				keys, texts, all = append(keys, int64(i)), append(texts, fmt.Sprint(i)), append(all, x)
			}
			o.insert(name, "", 30, int64s("id", keys), strs("text", texts), milvusVectors("vector", all))
			r, info := attach(t, c, entries.Arguments{Collection: name})
			hits, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 30}, []sdk.Query{{Vector: []float32{1, 0}}})
			must.Do(t, err)
			for _, h := range hits[0].Dense {
				if math.Abs(float64(h.Dense)-want[h.ID]) > 1e-5 {
					t.Errorf("%s: entry %s has %v, want %v; %s", name, h.ID, h.Dense, want[h.ID], info.Notes[0])
				}
			}
			if len(hits[0].Dense) != 30 {
				t.Errorf("%s: %d found", name, len(hits[0].Dense))
			}
		}
	}
}

// Keys cover the whole range of integers.
func TestAttachedLargestKeys(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	keys := []int64{math.MinInt64 + 1, math.MinInt64 + 2, -1, 0, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	o.create("largest", made{metrics: map[string]string{"vector": "COSINE"}, fields: []*schemapb.FieldSchema{
		primary(field("id", schemapb.DataType_Int64)), field("text", schemapb.DataType_VarChar), field("vector", schemapb.DataType_FloatVector, "dim", "2"),
	}})
	texts, all := make([]string, len(keys)), make([][]float32, len(keys))
	for i := range keys {
		all[i] = []float32{1, float32(i)}
	}
	o.insert("largest", "", len(keys), int64s("id", keys), strs("text", texts), milvusVectors("vector", all))
	r, _ := attach(t, c, entries.Arguments{Collection: "largest"})
	after := ""
	for _, key := range keys {
		page, err := r.Scan(t.Context(), "largest", sdk.Scan{Limit: 1, After: after})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != fmt.Sprint(key) {
			t.Fatalf("after %q: %+v, %v; want %d", after, page, err, key)
		}
		after = page.Next
	}
}

// If every row has the metadata in a field, the server compares it, also negated: none of the rows that a search can
// read may match.
func TestAttachedFarMatches(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	o.create("far", made{dynamic: true, metrics: map[string]string{"vector": "COSINE"}, fields: []*schemapb.FieldSchema{
		primary(field("id", schemapb.DataType_Int64)), field("text", schemapb.DataType_VarChar), field("lang", schemapb.DataType_VarChar), field("vector", schemapb.DataType_FloatVector, "dim", "2"),
	}})
	const n = 20_000
	for from := 0; from < n; from += n / 4 {
		var keys []int64
		var texts, langs []string
		var all [][]float32
		for i := from; i < from+n/4; i++ {
			lang, x := "en", []float32{1, 0}
			if i%n == n-1 {
				lang, x = "de", []float32{-1, 0}
			}
			keys, texts, langs, all = append(keys, int64(i)), append(texts, ""), append(langs, lang), append(all, x)
		}
		o.insert("far", "", n/4, int64s("id", keys), strs("text", texts), strs("lang", langs), milvusVectors("vector", all), objects(t, "", make([]map[string]any, n/4)))
	}
	r, _ := attach(t, c, entries.Arguments{Collection: "far"})
	english := sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldMeta, Key: "lang", Values: []any{"en", "fr"}}
	hits, err := r.Search(t.Context(), "far", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 0}, Filter: &sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{english}}}})
	if err != nil || len(hits[0].Dense) != 1 || hits[0].Dense[0].ID != fmt.Sprint(n-1) {
		t.Errorf("found %+v, %v", hits, err)
	}
}

// Searches request no texts, since the SDK gets the texts of the kept entries. They send at most as many queries at a
// time as fit into a message with a vector in each row.
func TestAttachedLargeRows(t *testing.T) {
	s := newScripted()
	s.metrics["vector"] = "IP"
	r, _ := attach(t, s.start(t), entries.Arguments{Collection: "docs"})
	var queries []sdk.Query
	for range 64 {
		queries = append(queries, sdk.Query{Vector: []float32{1, 1}})
	}
	hits, err := r.Search(t.Context(), "docs", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 240, Texts: true}, queries)
	must.Do(t, err)
	for i, h := range hits {
		if len(h.Dense) != 1 || h.Dense[0].Entry != nil {
			t.Errorf("query %d finds %+v", i, h.Dense)
		}
	}
	if s.most == 0 || s.most*2*240 > 5000 || slices.Contains(s.outputs, "text") {
		t.Errorf("a search has %d queries, for the fields %v", s.most, s.outputs)
	}
}
