package journal_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

func TestDifferences(t *testing.T) {
	input := filepath.Join(t.TempDir(), "in.tsv")
	look := func(content string) journal.SeenFile {
		t.Helper()
		if err := os.WriteFile(input, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := journal.LookAtFile(input)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := func() journal.Manifest {
		return journal.Manifest{
			Version: "1", Parts: map[string]string{"sample.llm": "a", "elect.e": "b"}, Input: look("text\na\n"), Limit: 5,
			Knowledge: []journal.ManifestKnowledge{{Name: "k", Collection: "c", Content: "x"}},
			Stages:    []journal.ManifestStage{{Stage: "sample.llm", Use: "openai", Plugin: "racflow", Version: "1", Fingerprint: "f"}},
		}
	}
	tests := map[string]struct {
		change func(*journal.Manifest)
		want   []string
	}{
		"nothing":     {func(m *journal.Manifest) { m.ID = "other" }, nil},
		"a stage":     {func(m *journal.Manifest) { m.Parts["sample.llm"] = "z" }, []string{"sample.llm of the file"}},
		"a new stage": {func(m *journal.Manifest) { m.Parts["sample.b"] = "z" }, []string{"sample.b of the file"}},
		"input":       {func(m *journal.Manifest) { m.Input = look("text\nb\n") }, []string{"the input " + input}},
		"limit":       {func(m *journal.Manifest) { m.Limit = 6 }, []string{"Options.Limit, which was 5"}},
		"knowledge":   {func(m *journal.Manifest) { m.Knowledge[0].Content = "y" }, []string{`knowledge "k"`}},
		"model":       {func(m *journal.Manifest) { m.Stages[0].Fingerprint = "g" }, []string{"what sample.llm works with, such as its model or template"}},
		"racflow":     {func(m *journal.Manifest) { m.Version = "2" }, []string{"racflow is version 2, it was 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := base(), base()
			test.change(&after)
			if got := before.Differences(after); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
