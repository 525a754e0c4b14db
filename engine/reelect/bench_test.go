package reelect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/enginetest"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/run/runtest"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

const file = `
variable "election" { default = "soft" }
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  sample "near" { use = "neighbours" }
  sample "centroid" { use = "prototype" }
  sample "word" { use = "first_word" }
  elect "e" {
    use    = var.election
    accept = "answer in labels"
    flag   = "agreement < 0.8"
  }
}
`

// firstWord votes by the first word alone.
type firstWord struct{}

func (firstWord) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		var n int
		_, err := fmt.Sscanf(item.Text, "w%d", &n)
		if err != nil {
			return nil, err
		}
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: fmt.Sprintf("label%d", n%4), Weight: 1}}}}
	}
	return all, nil
}

// leader elects as that voter says who was right most often on the rows that it learned
// from, of those that voted.
type leader struct{ file string }

func (l leader) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	right := map[string]int{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			for _, s := range row.Samples {
				if label, ok := ballot.Best(s); ok && label == row.Label {
					right[s.Voter]++
				}
			}
		}
	}
	raw, err := json.Marshal(right)
	return errors.Join(err, os.WriteFile(l.file, raw, 0o600))
}

func (l leader) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	raw, err := os.ReadFile(l.file)
	if err != nil {
		return nil, err
	}
	var right map[string]int
	if err := json.Unmarshal(raw, &right); err != nil {
		return nil, err
	}
	all := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		most := -1
		for _, s := range item.Samples {
			if label, ok := ballot.Best(s); ok && right[s.Voter] > most {
				most = right[s.Voter]
				all[i] = sdk.Verdict{Answer: label, Agreement: 1}
			}
		}
	}
	return all, nil
}

func stages() enginetest.Catalog {
	voter := func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return firstWord{}, nil }
	election := func(_ context.Context, s sdk.Setup, _ struct{}) (sdk.Elector, error) {
		return leader{filepath.Join(s.StateDir, "right.json")}, nil
	}
	return append(enginetest.Stages(),
		sdk.SampleStage("first_word", "Votes by the first word.", voter, sdk.Reads(sdk.ColumnText)),
		sdk.ElectStage("leader", "Learns whom to follow.", election, sdk.Fits(sdk.ColumnSamples)))
}

// texts are of words of which some hint at a label, and no two are alike: nothing is a
// tie. The first are known.
func texts() (labels, texts []string) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // for a test
	for i := range 120 {
		var words []string
		for range 7 {
			words = append(words, fmt.Sprintf("w%d", (i%4)*10+random.IntN(25)))
		}
		labels, texts = append(labels, fmt.Sprintf("label%d", i%4)), append(texts, strings.Join(words, " "))
	}
	return labels, texts
}

const known = 40

// files are those of the pipeline, with what it knows and what it is asked.
func files() map[string]string {
	train, input := "text\tlabel\n", "text\tlabel\n"
	labels, texts := texts()
	for i := range texts {
		row := texts[i] + "\t" + labels[i] + "\n"
		if i < known {
			train += row
		} else {
			input += row
		}
	}
	return map[string]string{"train.tsv": train, "input.tsv": input, runtest.File: file}
}

// open starts the pipeline with some of its arguments set.
func open(t *testing.T, set ...pipeline.Override) (*run.Run, *pipeline.Pipeline, launch.Func) {
	t.Helper()
	dir := runtest.Folder(t, files())
	p, start := runtest.Load(t, stages(), dir, set...).Pipelines[0], runtest.Launch(t, dir)
	r, err := run.Open(t.Context(), p, run.Options{Options: stage.Options{Ballots: true, Fitted: filepath.Join(dir, "fitted")}, Launch: start})
	if err != nil {
		t.Fatal(err)
	}
	return r, p, start
}

// answer answers the other texts, of which one is a row that cannot be used, and returns
// how many they are.
func answer(t *testing.T, r *run.Run, write func([]outcome.Result) error) int {
	t.Helper()
	labels, texts := texts()
	var rows []source.Row
	for i := known; i < len(texts); i++ {
		rows = append(rows, source.Row{Line: i + 1, Text: texts[i], Label: labels[i]})
	}
	rows[3].Err = errors.New("it cannot be read")
	if _, err := r.Items(t.Context(), runtest.Rows(rows...), nil, write); err != nil {
		t.Fatal(err)
	}
	return len(rows)
}
