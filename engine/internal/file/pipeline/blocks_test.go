package pipeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// anything offers every stage that a file uses.
type anything struct{}

func (anything) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	return sdk.Stage{Kind: kind, Name: use}, true
}
func (anything) Uses(sdk.Kind) []string { return []string{"x"} }

// The loader sets the defaults that the format describes.
func TestDescribedDefaults(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "rows.tsv"), []byte("text\n"), 0o600))
	file, diags := Load(t.Context(), "p.hcl", Options{Dir: dir, Catalog: anything{}, Text: []byte(`
limit "l" { requests_per_minute = 1 }
cache {}
knowledge "k" {
  source { path = "rows.tsv" }
  labels { path = "rows.tsv" }
  enrich "e" { use = "x" }
  embed { use = "x" }
  store { use = "x" }
}
knowledge "d" {
  source { path = "." }
  embed { use = "x" }
  store { use = "x" }
}
knowledge "bare" {
  source { path = "rows.tsv" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  journal {}
  retrieve "r" { from = knowledge.k }
  rerank "b" { use = "x" }
  sample "s" { use = "x" }
  elect "e" {}
  expect "x" { rule = "leaked == 0" }
}
`)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	k, stages := file.Knowledge[0], file.Pipelines[0].Stages
	source, input, r, rerank, sample := k.Sources[0], file.Pipelines[0].Input, stages[0].Retrieve.Ranking, stages[1], stages[2]
	kept := file.Pipelines[0].Journal
	got := map[string]any{
		"journal.sync": kept.Sync, "journal.keep": kept.Keep, "journal.runs": kept.Runs, "cache.vector_bytes": file.Cache.Vectors,
		"limit.concurrency": file.Limits[0].Concurrency,
		"source.id":         source.ID, "source.text": source.Text, "source.label": source.Label, "source.html": file.Knowledge[1].Sources[0].Documents.HTML, "source.max_bytes": file.Knowledge[1].Sources[0].Documents.Max,
		"source.labels": map[bool]string{false: "one", true: "many"}[source.Labels.Many], "source.reviewed": source.Reviewed, "source.header": source.Form.Header == nil, "input.header": input.Form.Header == nil,
		"input.id": input.ID, "input.text": input.Text, "input.label": input.Label, "input.gold": input.Gold,
		"enrich.enabled": k.Enrich[0].Enabled, "enrich.embed": k.Enrich[0].Embedded, "enrich.lexical": k.Enrich[0].Lexical,
		"store.analyzer": k.Analyzer,
		"retrieve.top_k": r.TopK, "retrieve.mode": r.Mode, "retrieve.fusion": r.Method, "retrieve.dense_weight": r.DenseWeight, "retrieve.rrf_k": r.K,
		"embed.use": file.Knowledge[2].Embed.Use, "store.use": file.Knowledge[2].Store.Use, "model.provider": "openai", "model.batch": false,
		"elect.use": stages[3].Use, "rerank.top_k": rerank.TopK, "sample.n": sample.N, "sample.resamples": sample.Resamples,
	}
	table := k.Described()
	for name, value := range map[string]any{"header": table.Form.Header == nil, "label": table.Text, "name": table.Describes.Name, "description": table.Describes.Description, "examples": table.Describes.Examples, "becomes": table.Describes.Becomes} {
		got["labels."+name] = value
	}
	got["expect.enabled"] = file.Pipelines[0].Expects[0].Enabled
	for _, s := range stages {
		got[s.Block+".enabled"], got[s.Block+".on_error"] = s.Enabled, s.OnError
	}
	want := map[string]any{}
	var collect func(b grammar.Block)
	collect = func(b grammar.Block) {
		for _, a := range b.Arguments {
			if a.Default != nil {
				want[b.Type+"."+a.Name] = string(a.Default)
			}
		}
		for _, inner := range b.Blocks {
			collect(inner)
		}
	}
	collect(grammar.Block{Blocks: grammar.Blocks()})
	delete(want, "prompt.enabled")
	delete(want, "prompt.on_error")
	for name, value := range got {
		raw, err := json.Marshal(value)
		must.Do(t, err)
		got[name] = string(raw)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if file.Knowledge[1].Sources[0].Documents.Max != document.MaxBytes {
		t.Errorf("documents have at most %d bytes", file.Knowledge[1].Sources[0].Documents.Max)
	}
}

// A text from an editor is loaded in place of the file, which need not exist.
func TestLoadText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.hcl")
	must.Do(t, os.WriteFile(path, []byte("locals {}\n"), 0o600))
	for _, path := range []string{path, filepath.Join(dir, "missing.hcl")} {
		_, diags := Load(t.Context(), path, Options{Dir: dir, Catalog: anything{}, Text: []byte("loc {}\n")})
		if len(diags) != 1 || diags[0].Subject.Filename != path {
			t.Errorf("%s: %v", path, diags)
		}
	}
}
