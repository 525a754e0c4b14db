package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/tools/txtar"
)

// HCL writes names in one normal form of Unicode, and Macs in another. Both are found, wherever a file names a path.
func TestPathsOfMacs(t *testing.T) {
	decomposed := norm.NFD.String("ä")
	archive := &txtar.Archive{Comment: []byte("-input ä.csv\n-var rows=ä/ä.csv\n")}
	for name, text := range map[string]string{
		"ä/ä.csv": "text,label\na,b\n", "ä.csv": "text,label\na,b\n", "ä/labels.tsv": "label\tdescription\nb\tx\n", "ä/ä.txt": "answer", "ä/ä.tmpl": "x", "ä/ä.jsonl": "",
	} {
		archive.Files = append(archive.Files, txtar.File{Name: strings.ReplaceAll(name, "ä", decomposed), Data: []byte(text)})
	}
	archive.Files = append(archive.Files, txtar.File{Name: "p.hcl", Data: []byte(`
variable "rows" { type = path }
knowledge "k" {
  source { path = var.rows }
  source {
    path     = "ä/ä.jsonl"
    reviewed = true
  }
  labels { path = "ä/labels.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
knowledge "docs" {
  source { path = "ä" }
  chunk { use = "sentences" }
  embed { use = "hashing" }
  store { use = "local" }
}
knowledge "glob" {
  source { path = "ä/*ä*.txt" }
  chunk { use = "sentences" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  prompt "ask" {
    use    = "completion"
    config { template = "ä/ä.tmpl" }
  }
  sample "neighbours" { use = "neighbours" }
  elect "e" {
    use  = "soft"
    when = file("ä/ä.txt") == "answer" ? "true" : "false"
  }
}
`)})
	path, o := unpack(t, archive)
	o.Input = filepath.Join(o.Dir, o.Input)
	f, diags := Load(t.Context(), path, o)
	for _, d := range diags {
		if strings.Contains(d.Summary, "file") || strings.Contains(d.Detail, "no such") {
			t.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	under := func(name string) string { return filepath.Join(o.Dir, strings.ReplaceAll(name, "ä", decomposed)) }
	for want, got := range map[string]string{
		"ä/ä.csv": f.Knowledge[0].Sources[0].Path, "ä/ä.jsonl": f.Knowledge[0].Sources[1].Path, "ä/labels.tsv": f.Knowledge[0].Sources[2].Path, "ä": f.Knowledge[1].Documents().Path,
		"ä.csv": f.Pipelines[0].Input.Path, "ä/ä.tmpl": f.Pipelines[0].Stages[1].Paths()[0],
	} {
		if got != under(want) {
			t.Errorf("the path is %q, want %q", got, under(want))
		}
	}
}
