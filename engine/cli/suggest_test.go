package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
)

// some are stages of an embedder and an election.
type some struct{}

func (some) Uses(k sdk.Kind) []string {
	return map[sdk.Kind][]string{sdk.KindEmbed: {"hashing", "minilm"}, sdk.KindElect: {"soft"}}[k]
}

func (s some) Stage(k sdk.Kind, use string) (sdk.Stage, bool) {
	if !slices.Contains(s.Uses(k), use) {
		return sdk.Stage{}, false
	}
	return sdk.Stage{Arguments: []sdk.Argument{
		{Name: "tie", Type: sdk.TypeString, OneOf: []string{"first", "none"}}, {Name: "fast", Type: sdk.TypeBool}, {Name: "file", Type: sdk.TypePath}, {Name: "model", Type: sdk.TypePath},
	}}, true
}

const file = `
variable "train" {
  description = "Rows."
  type        = path
  default     = "train.tsv"
}
variable "embedder" { default = "minilm" }
variable "draw" { default = env("DRAW", "item") }
variable "tie" {}
variable "fast" { default = null }
variable "file" {}
variable "folder" {}
variable "loud" { default = false }
variable "free" {}
knowledge "k" {
  source { path = var.train }
  embed { use = var.embedder }
}
pipeline "p" {
  elect "e" {
    use = "soft"
    config {
      tie  = var.tie
      fast = var.fast
      file = var.file
      model = var.folder
    }
    flag = "${var.free}"
  }
  sample "s" { enabled = var.draw != "sample" && "item" == var.draw }
}
pipeline "q" { # which is still being written
`

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.hcl")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Read(path, some{})
	want := &File{
		Variables: []*Variable{
			{Name: "train", Doc: "Rows.", Path: true},
			{Name: "embedder", Values: []string{"minilm", "hashing"}},
			{Name: "draw", Values: []string{"sample", "item"}},
			{Name: "tie", Values: []string{"first", "none"}},
			{Name: "fast", Values: []string{"true", "false"}},
			{Name: "file", Path: true},
			{Name: "folder", Path: true, Model: true},
			{Name: "loud", Values: []string{"true", "false"}},
			{Name: "free"},
		},
		Pipelines: []string{"p", "q"}, Knowledge: []string{"k"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if empty := Read(filepath.Join(t.TempDir(), "none.hcl"), some{}); len(empty.Variables) > 0 || empty.Variable("x") != nil {
		t.Errorf("of no file: %+v", empty)
	}
}
