package lsp

import (
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// testCatalog has a few stages, and records which are asked for.
type testCatalog struct{ asked []string }

var stages = []sdk.Stage{
	{Kind: sdk.KindSample, Name: "knn", Doc: "Votes by its neighbours.", Arguments: []sdk.Argument{
		{Name: "k", Type: sdk.TypeInt, Doc: "How many.", Default: []byte("15")},
		{Name: "how", Type: sdk.TypeString, Doc: "In which way.", OneOf: []string{"near", "far"}},
		{Name: "exact", Type: sdk.TypeBool, Doc: "No guessing."},
		{Name: "key", Type: sdk.TypeString, Doc: "The key.", Secret: true},
	}},
	{Kind: sdk.KindSample, Name: "mine/best", Doc: "Of somebody else.", Arguments: []sdk.Argument{
		{Name: "deep", Type: sdk.TypeBlock, Doc: "Inside.", Fields: []sdk.Argument{{Name: "depth", Type: sdk.TypeInt, Doc: "How deep."}}},
	}},
	{Kind: sdk.KindElect, Name: "soft", Doc: "Averages."},
	{Kind: sdk.KindElect, Name: "majority", Doc: "Counts."},
	{Kind: sdk.KindEmbed, Name: "hashing", Doc: "Hashes."},
	{Kind: sdk.KindStore, Name: "local", Doc: "A folder."},
}

func (c *testCatalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	c.asked = append(c.asked, use)
	i := slices.IndexFunc(stages, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == use })
	if i < 0 {
		return sdk.Stage{}, false
	}
	return stages[i], true
}

func (c *testCatalog) Uses(kind sdk.Kind) []string {
	var all []string
	for _, s := range stages {
		if s.Kind == kind {
			all = append(all, s.Name)
		}
	}
	return all
}

// mark marks the cursor in the texts of tests.
const mark = "¦"

// at is a request about the place of the mark in a text. Variables have values if the text without
// the mark loads up to the variables.
func at(t *testing.T, marked string) *request {
	t.Helper()
	offset := strings.Index(marked, mark)
	if offset < 0 {
		t.Fatal("no mark")
	}
	src := strings.Replace(marked, mark, "", 1)
	secrets := &redact.Secrets{}
	file, _ := pipeline.Load(t.Context(), "p.hcl", pipeline.Options{
		Dir: t.TempDir(), Text: []byte(src), Catalog: &testCatalog{}, Secrets: secrets,
		Getenv: func(name string) (string, bool) { return "hush-" + name, name == "KEY" },
	})
	d := &document{uri: "file:///p.hcl", path: "p.hcl", text: newText(src), root: outline([]byte(src)), file: file, secrets: secrets}
	return &request{document: d, catalog: known{&testCatalog{}}, place: locate(d.root, offset)}
}

func labels(items []completion) []string {
	var all []string
	for _, i := range items {
		all = append(all, i.Label)
	}
	return all
}

// in returns a complete file with the given stages in its pipeline.
func in(stages string) string {
	return `variable "election" {
  default     = "soft"
  description = "How it is decided."
}
variable "key" {
  default = secret("KEY")
}
locals { few = 3 }
limit "llm" { concurrency = 2 }
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
` + stages + `
}
`
}
