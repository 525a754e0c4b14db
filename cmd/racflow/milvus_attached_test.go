package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/result"
)

// attachedCollections are those that the libraries make, by their kind in .ci/milvus-foreign.py, with
// what a file has to say about them.
var attachedCollections = []struct {
	name, fields string
	ids          bool    // the primary key is the id of the row
	nested       bool    // metadata in metadata is found
	exact        float64 // the share of the ten nearest that are found where the server's metric is not the cosine; 0: all
	analyzer     string  // of the BM25 function; empty: there is none
}{
	{name: "quick", nested: true, fields: `fields {
        meta = ["lang", "year", "weight", "urgent", "$meta[\"origin\"][\"team\"]", "$meta[\"origin\"][\"level\"]"]
      }`},
	{name: "ip", nested: true},
	{name: "ip_stretched", exact: 0.95, fields: `fields {
        label = "intent"
        meta  = ["lang", "year", "weight", "urgent", "origin"]
      }`},
	{name: "l2_words", ids: true, nested: true, analyzer: "english"},
	{name: "l2_stretched", exact: 0.9},
	{name: "langchain", ids: true, nested: true},
	{name: "langchain_words", ids: true, analyzer: "standard"},
	{name: "llama", ids: true},
	{name: "llama_words", ids: true, analyzer: "standard"},
}

// TestMilvusAttached compares collections that other libraries have made with the embedded store on
// the same rows, and looks afterwards whether anything has changed in them.
func TestMilvusAttached(t *testing.T) {
	f := startForeign(t, foreignRows(t, "train.tsv"), "")
	f.write("items.jsonl", every(7, foreignRows(t, "test.tsv")))
	var names []string
	for _, c := range attachedCollections {
		names = append(names, c.name)
	}
	f.make(names...)
	before := f.python("look", names...)
	embedded := f.keeping("embedded.hcl")
	for _, c := range attachedCollections {
		t.Run(c.name, func(t *testing.T) {
			f := f.of(t)
			attached := f.keeping(f.attach(c.name, c.fields))
			dense := attached("found")
			if c.exact > 0 {
				share := overlap(dense, embedded("found"))
				t.Logf("%.3f of the ten nearest are found", share)
				if share < c.exact {
					t.Errorf("%.3f of the ten nearest are found", share)
				}
				return
			}
			sameCandidates(t, "dense", dense, embedded("found"), c.ids)
			sameCandidates(t, "filtered", attached("filtered"), embedded("filtered"), c.ids)
			if c.nested {
				sameCandidates(t, "nested", attached("nested"), embedded("nested"), c.ids)
			}
			sameVotes(t, attached("voted"), embedded("voted"), c.ids)
			hybrid := attached("found", "-var", "mode=hybrid")
			if c.analyzer == "" { // then it is dense
				sameCandidates(t, "hybrid without words", hybrid, dense, c.ids)
				return
			}
			words := overlap(attached("found", "-var", "mode=lexical"), embedded("found", "-var", "mode=lexical", "-var", "analyzer="+c.analyzer))
			both := overlap(hybrid, embedded("found", "-var", "mode=hybrid", "-var", "analyzer="+c.analyzer))
			t.Logf("%.3f of the embedded store's ten are found by words, %.3f by both", words, both)
			if words < 0.8 || both < 0.85 {
				t.Errorf("%.3f of the embedded store's ten are found by words, %.3f by both", words, both)
			}
		})
	}
	t.Run("shots", func(t *testing.T) { f.of(t).sameShots("l2_words", "langchain", "llama") })
	if after := f.python("look", names...); after != before {
		t.Errorf("the collections have changed (-after +before):\n%s", cmp.Diff(after, before))
	}
}

// keeping runs a pipeline of the file over items.jsonl, once for the same arguments.
func (f *foreign) keeping(file string) func(pipeline string, args ...string) []result.Result {
	kept := map[string][]result.Result{}
	return func(pipeline string, args ...string) []result.Result {
		f.t.Helper()
		key := strings.Join(append(args, pipeline), " ")
		if kept[key] == nil {
			kept[key], _ = f.run(file, append([]string{"--input", "items.jsonl", "--pipeline", pipeline}, args...)...)
		}
		return kept[key]
	}
}
