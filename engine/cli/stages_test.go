package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"

	"github.com/racflow/racflow/sdk"
)

// TestStageExamples puts the example of each stage into a file, which must be valid.
func TestStageExamples(t *testing.T) {
	dir := folder(t, map[string]string{"rows.tsv": "text\tlabel\nx\ty\n", "doc.md": "# x\n"})
	known, err := catalog.New(t.Context(), nil, builtin.Stages(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range builtin.Stages() {
		blocks := map[sdk.Kind]string{
			sdk.KindEmbed: `embed { use = "hashing" }`, sdk.KindStore: `store { use = "local" }`,
			sdk.KindPrompt: `prompt "p" { use = "completion" }`, sdk.KindElect: `elect "e" { use = "soft" }`,
			sdk.KindSample: `sample "s" { use = "neighbours" }`,
		}
		path := "rows.tsv"
		if stage.Kind == sdk.KindChunk || stage.Kind == sdk.KindEnrich {
			path, blocks[sdk.KindChunk] = "doc.md", `chunk { use = "recursive" }`
		}
		blocks[stage.Kind] = catalog.Explain(stage.Name, stage).Example
		name := string(stage.Kind) + stage.Name + ".hcl"
		text := fmt.Sprintf("knowledge \"k\" {\n source { path = %q }\n%s\n%s\n%s\n%s\n}\npipeline \"p\" {\n retrieve \"near\" { from = knowledge.k }\n%s\n%s\n%s\n%s\n}\n",
			path, blocks[sdk.KindChunk], blocks[sdk.KindEnrich], blocks[sdk.KindEmbed], blocks[sdk.KindStore],
			blocks[sdk.KindRerank], blocks[sdk.KindPrompt], blocks[sdk.KindSample], blocks[sdk.KindElect])
		write(t, dir, name, text)
		file := filepath.Join(dir, name)
		loaded, diags := pipeline.Load(t.Context(), file, pipeline.Options{
			Dir: dir, Getenv: func(string) (string, bool) { return "x", true }, Catalog: known,
		})
		if diags.HasErrors() {
			t.Errorf("%s/%s: %v\n%s", stage.Kind, stage.Name, diags, loaded.Sources[file].Bytes)
		}
	}
}

// A number without bounds is probably a forgotten check, unless a reason is given.
func TestNumbersHaveBounds(t *testing.T) {
	unbounded := []string{} // kind/stage.argument, each with a reason beside its tags
	for _, stage := range builtin.Stages() {
		for _, a := range stage.Arguments {
			isNumber := slices.Contains([]sdk.ArgumentType{sdk.TypeInt, sdk.TypeFloat, sdk.TypeDuration, sdk.TypeNumberList, sdk.TypeNumberMap}, a.Type)
			name := fmt.Sprintf("%s/%s.%s", stage.Kind, stage.Name, a.Name)
			if isNumber && a.Range.IsZero() && !slices.Contains(unbounded, name) {
				t.Errorf("%s has no bounds", name)
			}
			if a.Doc == "" {
				t.Errorf("%s has no doc", name)
			}
		}
	}
}

// The established name of a stage means the same stage in a file, in -set and in labels of configs:
// the digests of what answers depend on are equal.
func TestStageAliases(t *testing.T) {
	dir := folder(t, map[string]string{"rows.tsv": "text\tlabel\nx\ty\n"})
	known, err := catalog.New(t.Context(), nil, builtin.Stages(), nil)
	if err != nil {
		t.Fatal(err)
	}
	digests := func(near, center, margin, stacked string) (all []string) {
		write(t, dir, "p.hcl", fmt.Sprintf(`
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
}
pipeline "p" {
  retrieve "near" {}
  sample "near" {
    use = %[1]q
    config %[1]q { k = 7 }
  }
  sample "center" { use = %[2]q }
  sample "margin" { use = %[3]q }
  elect "e" {
    use = %[4]q
    config %[4]q { answer_at = 0 }
  }
}
`, near, center, margin, stacked))
		file := filepath.Join(dir, "p.hcl")
		loaded, diags := pipeline.Load(t.Context(), file, pipeline.Options{Dir: dir, Catalog: known, Set: []pipeline.Override{{Target: "center.sharpness", Value: "3"}}})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		for _, s := range loaded.Pipelines[0].Stages {
			all = append(all, pipeline.WorkDigest(s)+string(s.Config.Identity))
		}
		return all
	}
	want, got := digests("neighbours", "prototype", "linear", "learned"), digests("knn", "centroid", "svm", "stacking")
	if !slices.Equal(want, got) {
		t.Errorf("%v, want %v", got, want)
	}
	if described, err := known.Describe(sdk.KindSample, "knn"); err != nil || described[0].Use != "neighbours" || described[0].Alias != "knn" {
		t.Errorf("%v, %v", described, err)
	}
}
