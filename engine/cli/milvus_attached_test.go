package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/result"
)

// attachedCollections are the collections that the libraries make, by their kind in
// .ci/milvus-foreign.py, with the arguments that a file needs for them. Collections without words are
// in TestMilvusAttachedAsk. The tests of the store cover every metric, type of keys and place of
// metadata.
var attachedCollections = []struct {
	name, fields string
	plan         string  // part of what the plan says about them
	ids          bool    // the primary key is the id of the row
	nested       bool    // metadata within metadata is found
	exact        float64 // share of the ten nearest that are found if the server's metric is not the cosine; 0: all
	analyzer     string  // of the BM25 function; empty: there is none
}{
	{name: "quick", plan: "vector from vector (the only field of vectors)", nested: true, fields: `fields {
        meta = ["lang", "year", "weight", "urgent", "$meta[\"origin\"][\"team\"]", "$meta[\"origin\"][\"level\"]"]
      }`},
	{name: "l2_words", plan: "sparse from bm25 (filled by a BM25 function of the server)", ids: true, nested: true, analyzer: "english"},
	{name: "l2_stretched", plan: "The server's scores (L2) are no cosines", exact: 0.85},
	{name: "langchain_words", plan: "id from pk (the primary key)", ids: true, analyzer: "standard"},
	{name: "llama_words", plan: "meta from doc_id,", ids: true, analyzer: "standard"},
}

// TestMilvusAttached compares collections that other libraries made with the embedded store on the
// same rows. Afterwards it checks that they have not changed.
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
			file := f.attach(c.name, c.fields)
			attached := f.keeping(file)
			dense := attached("found")
			f.planned(file, c.plan, "560      read only", "mean cosine 1.000 with the vectors of minilm over 50 entries")
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
			if c.analyzer == "" { // then the search is dense
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
	t.Run("shots", func(t *testing.T) { f.of(t).sameShots("l2_words", "langchain_words", "llama_words") })
	if after := f.python("look", names...); after != before {
		t.Errorf("the collections have changed (-after +before):\n%s", cmp.Diff(after, before))
	}
}

// planned checks what racflow plan says about a collection.
func (f *foreign) planned(file string, wants ...string) {
	f.t.Helper()
	c, said := f.command("plan", file, "--input", "items.jsonl", "--pipeline", "found")
	out, err := c.Output()
	for _, want := range wants {
		if err != nil || !strings.Contains(string(out), want) {
			f.t.Errorf("plan: %v, and it does not say %q:\n%s%s", err, want, out, said)
		}
	}
}

// keeping returns a function that runs a pipeline of the file over items.jsonl, once for the same
// arguments.
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
