package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/tune"
)

// TestPromiseIsWhatARunDoes finds a guarantee together with the threshold of a cascade and the
// weights of its voters, and runs the pipeline with all of them. The answers that are not flagged are
// exactly the counted ones.
func TestPromiseIsWhatARunDoes(t *testing.T) {
	s := newTuneSet(t, absolute(t, "../../examples/intent/train.tsv"), absolute(t, "../../examples/intent/test.tsv"), "-var", "embedder=hashing")
	flagged := strings.Replace(cascade, `accept = "answer in labels"`, `accept = "answer in labels"
    flag   = "confidence < var.flag_below"`, 1) + "\nvariable \"flag_below\" { default = 0.4 }\n"
	write(t, s.dir, "cascade.hcl", flagged)
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
	var gotRows, gotAnswered, gotRight int
	for _, r := range jsonLines[struct {
		Text, Answer, Expected string
		Flagged                bool
	}](t, readFile(t, s.dir, "answers.jsonl")) {
		if !tune.ReservedForPromise(r.Text) {
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
	if got, want := [3]int{gotRows, gotAnswered, gotRight}, [3]int{rows, answered, right}; got != want || answered == 0 || answered == rows {
		t.Errorf("rows, answered without a flag, right: a run has %d, tune has found %d", got, want)
	}
}
