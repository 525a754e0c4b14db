package workspace

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
)

// TestEqualRowsOfTwoFiles: equal rows without ids in two files are two entries of the knowledge. A
// decision about one of them applies only to that one.
func TestEqualRowsOfTwoFiles(t *testing.T) {
	dir := t.TempDir()
	block := &pipeline.Knowledge{}
	for _, name := range []string{"a.tsv", "b.tsv"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("text\tlabel\nmy card\tlost\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		block.Sources = append(block.Sources, pipeline.Source{Path: path, Form: source.Form{Format: source.TSV}, Text: "text", Label: "label"})
	}
	decisions := filepath.Join(dir, "reviewed.jsonl")
	block.Sources = append(block.Sources, pipeline.Source{Path: decisions, Form: source.Form{Format: source.JSONL}, Reviewed: true})
	set, err := readKnowledge("k", block, false)
	if err != nil || len(set.Rows) != 2 || set.Rows[0].Entry == set.Rows[1].Entry {
		t.Fatalf("%+v, %v", set, err)
	}
	if err := reviewed.Write(decisions, nil, []reviewed.Row{{Text: "my card", Replaces: set.Rows[1].Entry}}); err != nil {
		t.Fatal(err)
	}
	if set, err = readKnowledge("k", block, false); err != nil || len(set.Rows) != 1 || set.Rows[0].File != block.Sources[0].Path {
		t.Errorf("one of them was dropped: %+v, %v", set, err)
	}
}

// TestVoted: the shares of a voter sum to 1.
func TestVoted(t *testing.T) {
	one := outcome.Result{Text: "x", Expected: "a", Votes: []result.Vote{
		{Voter: "near", Answer: "a", Weight: .9}, {Voter: "near", Answer: "b", Weight: .7}, {Voter: "linear", Answer: "a", Weight: .5},
	}}
	if got := voted(one).Votes; len(got) != 2 || math.Abs(got["a"]-.78125) > 1e-9 || math.Abs(got["b"]-.21875) > 1e-9 {
		t.Errorf("the shares are %v", got)
	}
}
