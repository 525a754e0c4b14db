package milvus

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// simple makes a collection with a text and a vector for each id.
func (o *owner) simple(name, partition string, ids ...string) {
	o.t.Helper()
	if partition == "" {
		o.create(name, made{metrics: map[string]string{"vector": "COSINE"}, fields: []*schemapb.FieldSchema{
			primary(field("id", schemapb.DataType_VarChar)), field("text", schemapb.DataType_VarChar), field("vector", schemapb.DataType_FloatVector, "dim", "2"),
		}})
	}
	var all [][]float32
	for range ids {
		all = append(all, []float32{1, 0})
	}
	o.insert(name, partition, len(ids), strs("id", ids), strs("text", ids), milvusVectors("vector", all))
}

// found returns the ids that a search and a scan find.
func found(t testing.TB, r *reader, name string) string {
	t.Helper()
	hits, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, []sdk.Query{{Vector: []float32{1, 0}}})
	must.Do(t, err)
	page, err := r.Scan(t.Context(), name, sdk.Scan{})
	must.Do(t, err)
	var searched, scanned []string
	for _, h := range hits[0].Dense {
		searched = append(searched, h.ID)
	}
	for _, e := range page.Entries {
		scanned = append(scanned, e.ID)
	}
	if !slices.Equal(searched, scanned) {
		t.Errorf("a search finds %q and a scan %q", searched, scanned)
	}
	return strings.Join(scanned, " ")
}

// If the file says so, another field than the primary key identifies entries.
func TestAttachedID(t *testing.T) {
	c := startEngine(t).config()
	o := newOwner(t, c)
	d := makeDocs(t, 60, true, 0)
	m := docsSchema(true, "IP", true)
	m.fields = append(m.fields, field("doc", schemapb.DataType_VarChar))
	o.create("docs", m)
	var names []string
	for i := range d.entries {
		names = append(names, "doc "+d.columns[1].GetScalars().GetStringData().Data[i]+" "+string(rune('A'+i)))
	}
	o.insert("docs", "", 60, append(d.columns, strs("doc", names))...)
	r, info := attach(t, c, entries.Arguments{Collection: "docs", Fields: entries.Fields{ID: "doc"}})
	if !slices.ContainsFunc(info.Notes, func(note string) bool { return strings.Contains(note, "not the primary key") }) {
		t.Errorf("notes %q", info.Notes)
	}
	all, err := r.Scan(t.Context(), "docs", sdk.Scan{Limit: 7})
	must.Do(t, err)
	next, err := r.Scan(t.Context(), "docs", sdk.Scan{After: all.Next})
	must.Do(t, err)
	var ids []string
	for _, e := range append(all.Entries, next.Entries...) {
		ids = append(ids, e.ID)
	}
	got, err := r.Get(t.Context(), "docs", append(ids, "none"))
	must.Do(t, err)
	for i, e := range got[:60] {
		if e.ID != ids[i] || !strings.HasPrefix(e.ID, "doc "+e.Text) {
			t.Errorf("the entry of id %q is %+v", ids[i], e)
		}
	}
	slices.Sort(ids)
	slices.Sort(names)
	if diff := gocmp.Diff(names, ids); diff != "" || got[60].ID != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	only := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{names[5]}}
	hits, err := r.Search(t.Context(), "docs", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "tea", Vector: d.entries[0].Vector, Filter: only}})
	if err != nil || len(hits[0].Dense) != 1 || hits[0].Dense[0].ID != names[5] {
		t.Errorf("%+v, %v", hits, err)
	}
}

// A collection that is dropped during reads stays dropped: nothing recreates it.
func TestAttachedDropped(t *testing.T) { readsDropped(t, startEngine(t).config()) }

func TestAttachedDroppedElsewhere(t *testing.T) { readsDropped(t, elsewhere(t)) }

func readsDropped(t *testing.T, c config) {
	o := newOwner(t, c)
	o.simple("short", "", "a", "b")
	r, _ := attach(t, c, entries.Arguments{Collection: "short"})
	if got := found(t, r, "short"); got != "a b" {
		t.Errorf("found %s", got)
	}
	_, err := o.DropCollection(t.Context(), &milvuspb.DropCollectionRequest{CollectionName: "short"})
	must.Do(t, err)
	for range 2 {
		_, err := r.Search(t.Context(), "short", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 1}}})
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), `collection "short" is gone`) {
			t.Errorf("a search gives %v", err)
		}
	}
	if _, err := r.Attach(t.Context()); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "no collection") {
		t.Errorf("attached again with %v", err)
	}
}

// An alias keeps meaning the collection that it named when it was attached.
func TestAttachedAliasElsewhere(t *testing.T) {
	c := elsewhere(t)
	o := newOwner(t, c)
	o.simple("first", "", "a")
	o.simple("second", "", "b", "c")
	_, err := o.CreateAlias(t.Context(), &milvuspb.CreateAliasRequest{CollectionName: "first", Alias: "current"})
	must.Do(t, err)
	r, before := attach(t, c, entries.Arguments{Collection: "current"})
	said := !slices.ContainsFunc(before.Notes, func(note string) bool { return strings.Contains(note, "does not say which collection the alias") })
	if said && before.Name != "first" || found(t, r, before.Name) != "a" {
		t.Errorf("attached %+v", before)
	}
	_, err = o.AlterAlias(t.Context(), &milvuspb.AlterAliasRequest{CollectionName: "second", Alias: "current"})
	must.Do(t, err)
	if got := found(t, r, before.Name); said && got != "a" {
		t.Errorf("after the swap, what was attached has %s", got)
	}
	after, err := r.Attach(t.Context())
	if err != nil || said && after.Name != "second" || after.ID == before.ID || found(t, r, after.Name) != "b c" {
		t.Errorf("attached again: %+v, %v", after, err)
	}
	if got, err := r.Get(t.Context(), before.Name, []string{"a"}); said && (err != nil || got[0].ID != "a") {
		t.Errorf("the one before is not served on: %+v, %v", got, err)
	}
}

// Only the partitions that the file names are read.
func TestAttachedPartitionsElsewhere(t *testing.T) {
	c := elsewhere(t)
	o := newOwner(t, c)
	o.simple("parted", "", "none")
	for _, name := range []string{"en", "de"} {
		_, err := o.CreatePartition(t.Context(), &milvuspb.CreatePartitionRequest{CollectionName: "parted", PartitionName: name})
		must.Do(t, err)
		o.simple("parted", name, name+"1", name+"2")
	}
	o.load("parted")
	r, info := attach(t, c, entries.Arguments{Collection: "parted", Partitions: []string{"en"}})
	if got := found(t, r, "parted"); got != "en1 en2" || info.Entries < 2 { // Milvus Lite 3 counts all
		t.Errorf("found %s, %+v", got, info)
	}
	got, err := r.Get(t.Context(), "parted", []string{"de1", "en1"})
	if err != nil || got[0].ID != "" || got[1].ID != "en1" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = openReader(t, c, entries.Arguments{Collection: "parted", Partitions: []string{"fr"}}).Attach(t.Context())
	if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), `no partition "fr"`) {
		t.Errorf("a partition that is not there gives %v", err)
	}
}

// A released collection is loaded only if the file says so.
func TestAttachedReleasedElsewhere(t *testing.T) {
	c := elsewhere(t)
	o := newOwner(t, c)
	o.simple("released", "", "a")
	r, _ := attach(t, c, entries.Arguments{Collection: "released"})
	_, err := o.ReleaseCollection(t.Context(), &milvuspb.ReleaseCollectionRequest{CollectionName: "released"})
	must.Do(t, err)
	if _, err := r.Scan(t.Context(), "released", sdk.Scan{}); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "load = true") {
		t.Errorf("a scan gives %v", err)
	}
	if _, err := r.Attach(t.Context()); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "load = true") {
		t.Errorf("attached again with %v", err)
	}
	r, _ = attach(t, c, entries.Arguments{Collection: "released", Load: true})
	if got := found(t, r, "released"); got != "a" {
		t.Errorf("found %s", got)
	}
}

// NULL means no label, or missing metadata.
func TestAttachedNullElsewhere(t *testing.T) {
	c := elsewhere(t)
	if !hasWords() {
		t.Skip("the server is from before NULL")
	}
	o := newOwner(t, c)
	label, lang, year := field("label", schemapb.DataType_VarChar), field("lang", schemapb.DataType_VarChar), field("year", schemapb.DataType_Int64)
	label.Nullable, lang.Nullable, year.Nullable = true, true, true
	o.create("nulls", made{metrics: map[string]string{"vector": "COSINE"}, fields: []*schemapb.FieldSchema{
		primary(field("id", schemapb.DataType_VarChar)), field("text", schemapb.DataType_VarChar), label, lang, year, field("vector", schemapb.DataType_FloatVector, "dim", "2"),
	}})
	null := func(f *schemapb.FieldData, valid ...bool) *schemapb.FieldData { f.ValidData = valid; return f }
	o.insert("nulls", "", 3, strs("id", []string{"a", "b", "c"}), strs("text", []string{"1", "2", "3"}), milvusVectors("vector", [][]float32{{1, 0}, {1, 0}, {1, 0}}),
		null(strs("label", []string{"x", "y"}), true, false, true), null(strs("lang", []string{"en"}), true, false, false), null(int64s("year", []int64{2000, 2001}), false, true, true))
	r, _ := attach(t, c, entries.Arguments{Collection: "nulls"})
	entries := []sdk.Entry{
		{ID: "a", Text: "1", Label: "x", Meta: sdk.Meta{"lang": "en"}}, {ID: "b", Text: "2", Meta: sdk.Meta{"year": 2000.0}}, {ID: "c", Text: "3", Label: "y", Meta: sdk.Meta{"year": 2001.0}},
	}
	page, err := r.Scan(t.Context(), "nulls", sdk.Scan{Texts: true})
	if diff := gocmp.Diff(entries, page.Entries); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	is := func(f sdk.Field, key string, op sdk.FilterOp, value any) sdk.Filter {
		return sdk.Filter{Op: op, Field: f, Key: key, Values: []any{value}}
	}
	for _, f := range []sdk.Filter{
		is(sdk.FieldLabel, "", sdk.FilterIn, ""), is(sdk.FieldLabel, "", sdk.FilterIn, "x"), is(sdk.FieldLabel, "", sdk.FilterLess, "y"),
		is(sdk.FieldMeta, "lang", sdk.FilterIn, "en"), is(sdk.FieldMeta, "lang", sdk.FilterIn, ""), is(sdk.FieldMeta, "year", sdk.FilterLess, 2001.0), is(sdk.FieldMeta, "year", sdk.FilterIn, 0.0),
	} {
		for _, f := range []sdk.Filter{f, {Op: sdk.FilterNot, Parts: []sdk.Filter{f}}} {
			var want []string
			for _, e := range entries {
				if f.Match(e.ID, e.Label, e.Meta) {
					want = append(want, e.ID)
				}
			}
			hits, err := r.Search(t.Context(), "nulls", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 0}, Filter: &f}})
			must.Do(t, err)
			var got []string
			for _, h := range hits[0].Dense {
				got = append(got, h.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s selects %q, want %q", f.String(), got, want)
			}
		}
	}
}
