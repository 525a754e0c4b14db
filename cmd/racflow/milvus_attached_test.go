package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/result"
)

// attachedCollections are those that the libraries make, by their kind in .ci/milvus-foreign.py, with
// what a file has to say about them.
var attachedCollections = []struct {
	name, fields string
	ids          bool // the primary key is the id of the row
	words        bool // there is a BM25 function
	nested       bool // metadata in metadata is found
}{
	{name: "quick", nested: true, fields: `fields {
        meta = ["lang", "year", "weight", "urgent", "$meta[\"origin\"][\"team\"]", "$meta[\"origin\"][\"level\"]"]
      }`},
	{name: "ip", nested: true},
	{name: "ip_stretched", ids: true, nested: true, fields: `fields {
        id    = "key"
        label = "intent"
        meta  = ["lang", "year", "weight", "urgent", "origin"]
      }`},
	{name: "l2_words", ids: true, words: true, nested: true},
	{name: "l2_stretched", nested: true},
	{name: "langchain", ids: true, nested: true},
	{name: "langchain_words", ids: true, words: true},
	{name: "llama", ids: true},
	{name: "llama_words", ids: true, words: true},
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
	items := []string{"--input", "items.jsonl", "--pipeline"}
	embedded := func(args ...string) []result.Result {
		results, _ := f.run("embedded.hcl", append(slices.Clone(items), args...)...)
		return results
	}
	found, filtered, nested, voted := embedded("found"), embedded("filtered"), embedded("nested"), embedded("voted")
	hybrid, lexical := embedded("found", "-var", "mode=hybrid"), embedded("found", "-var", "mode=lexical")
	for _, c := range attachedCollections {
		t.Run(c.name, func(t *testing.T) {
			f := f.of(t)
			file := f.attach(c.name, c.fields)
			attached := func(args ...string) []result.Result {
				results, _ := f.run(file, append(slices.Clone(items), args...)...)
				return results
			}
			sameCandidates(t, "dense", attached("found"), found, c.ids)
			sameCandidates(t, "filtered", attached("filtered"), filtered, c.ids)
			if c.nested {
				sameCandidates(t, "nested", attached("nested"), nested, c.ids)
			}
			if d := cmp.Diff(attached("voted"), voted, cmpopts.EquateApprox(0, 1e-3)); d != "" {
				t.Errorf("votes (-attached +embedded):\n%s", d)
			}
			got := attached("found", "-var", "mode=hybrid")
			if !c.words { // then it is dense
				sameCandidates(t, "hybrid without words", got, found, c.ids)
				return
			}
			both, words := overlap(got, hybrid), overlap(attached("found", "-var", "mode=lexical"), lexical)
			t.Logf("of the embedded store's ten, %.2f are found by words and %.2f by both", words, both)
			if words < 0.6 || both < 0.8 {
				t.Errorf("of the embedded store's ten, %.2f are found by words and %.2f by both", words, both)
			}
		})
	}
	t.Run("shots", func(t *testing.T) { f.of(t).sameShots("l2_words", "langchain", "llama") })
	if after := f.python("look", names...); after != before {
		t.Errorf("the collections have changed (-after +before):\n%s", cmp.Diff(after, before))
	}
}
