package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKilledBuildLeavesTheOldGeneration kills a build of another generation
// when it has stored some entries. The file as it was answers as before, nothing embedded
// anew; the build resumes from what it had, and then replaces the old one.
func TestKilledBuildLeavesTheOldGeneration(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("text\tlabel\n")
	n := 8000
	if testing.Short() { // with the race detector, everything takes longer
		n = 2000
	}
	entries := fmt.Sprint(n, " entries")
	for i := range n {
		fmt.Fprintf(&rows, "text %d of label %d, and %x more words\tlabel %d\n", i, i%100, i*i, i%100)
	}
	write(t, dir, "rows.tsv", rows.String())
	write(t, dir, "items.tsv", "text\ntext 7 of label 7\n")
	write(t, dir, "p.hcl", `
variable "analyzer" { default = "standard" }
knowledge "k" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = 64 }
  }
  store {
    use      = "local"
    analyzer = var.analyzer
  }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
}
`)
	logs := filepath.Join(dir, ".racflow", "knowledge", "k", "k-*", "log")
	ask := func(args ...string) (string, string) {
		t.Helper()
		return good(t, racflow(t, dir, args...))
	}
	before, _ := ask("run", "p.hcl")
	old, err := filepath.Glob(logs)
	if err != nil || len(old) != 2 {
		t.Fatalf("logs of the entries and of the centroids wanted, got %q, %v", old, err)
	}

	state, saved := filepath.Join(dir, stateDir), t.TempDir()
	if err := os.CopyFS(saved, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	killWhen(t, func() *exec.Cmd { return racflow(t, dir, "run", "-var", "analyzer=code", "p.hcl") }, func() bool { return hasEntries(t, logs, old) }, func() {
		if err := errors.Join(os.RemoveAll(state), os.CopyFS(state, os.DirFS(saved))); err != nil {
			t.Fatal(err)
		}
	})

	if list, reported := ask("knowledge", "list", "-var", "analyzer=code", "p.hcl"); !strings.Contains(list, " incomplete ") || !strings.Contains(list, " old ") {
		t.Errorf("after the kill:\n%s%s", list, reported)
	}
	if after, reported := ask("run", "p.hcl"); after != before || !strings.Contains(reported, entries+", up to date") {
		t.Errorf("the old generation gives %s, was %s\n%s", after, before, reported)
	}
	if _, reported := ask("run", "-var", "analyzer=code", "p.hcl"); !strings.Contains(reported, entries) {
		t.Errorf("the build does not go on: %s", reported)
	}
	if gone, _ := ask("knowledge", "gc", "-var", "analyzer=code", "p.hcl"); !strings.Contains(gone, "(old, "+entries+")") {
		t.Errorf("gc: %s", gone)
	}
}

// hasEntries reports whether a log beside the old ones has grown beyond a note.
func hasEntries(t *testing.T, logs string, old []string) bool {
	t.Helper()
	all, err := filepath.Glob(logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range all {
		if info, err := os.Stat(log); err == nil && !slices.Contains(old, log) && info.Size() > 10_000 {
			return true
		}
	}
	return false
}
