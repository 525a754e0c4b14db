package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/tune/flagging"
)

// TestPromiseIsWhatARunDoes finds a promise beside the threshold of a cascade and the
// weights of its voters, and runs the pipeline with all of them: the answers that are
// not flagged are those that were counted.
func TestPromiseIsWhatARunDoes(t *testing.T) {
	examples := func(name string) string {
		path, err := filepath.Abs(filepath.Join("../../examples/intent", name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := newTuneSet(t, examples("train.tsv"), examples("test.tsv"), "-var", "embedder=hashing")
	flagged := strings.Replace(cascade, `accept = "answer in labels"`, `accept = "answer in labels"
    flag   = "confidence < var.flag_below"`, 1) + "\nvariable \"flag_below\" { default = 0.4 }\n"
	if err := os.WriteFile(filepath.Join(s.dir, "cascade.hcl"), []byte(flagged), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ := s.call(t, "tune", "--accuracy", "0.95", "--confidence", "0.6", "--share", "0.5", "--input", s.tune, "--output", "tuned.hclvars")
	t.Log(stdout)
	var rows, answered, right int
	at := strings.Index(stdout, "found on ")
	if at < 0 {
		t.Fatal("no promise")
	}
	if _, err := fmt.Sscanf(stdout[at:], "found on %d rows that no other value was found on: %d are answered without a flag, %d", &rows, &answered, &right); err != nil {
		t.Fatal(err)
	}
	_, _ = s.call(t, "run", "-var-file", "tuned.hclvars", "--input", s.tune, "--output", "answers.jsonl")
	answers, err := os.ReadFile(filepath.Join(s.dir, "answers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var gotRows, gotAnswered, gotRight int
	lines := bufio.NewScanner(bytes.NewReader(answers))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Text, Answer, Expected string
			Flagged                bool
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if !flagging.Reserved(r.Text) {
			continue
		}
		gotRows++
		if r.Answer != "" && !r.Flagged {
			gotAnswered++
			if r.Answer == r.Expected {
				gotRight++
			}
		}
	}
	if gotRows != rows || gotAnswered != answered || gotRight != right || answered == 0 || answered == rows {
		t.Errorf("a run has %d rows, %d answered without a flag, %d right; tune has found %d, %d, %d", gotRows, gotAnswered, gotRight, rows, answered, right)
	}
}
