package tune_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

const reelectFile = `
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

// firstWord votes by the first word only.
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

// leader elects the answer of one voter: of the voters that voted, the voter that was right most
// often on the rows that leader learnt from.
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

// texts returns texts of words, some of which hint at a label. No two texts are alike, so there are
// no ties. The first texts are known.
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

// files returns the pipeline's files: its knowledge and its input.
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
	return map[string]string{"train.tsv": train, "input.tsv": input, runtest.File: reelectFile}
}

// open starts the pipeline with some arguments set.
func open(t *testing.T, set ...pipeline.Override) (*run.Run, *pipeline.Pipeline, stage.Launch) {
	t.Helper()
	dir := runtest.Folder(t, files())
	p, start := runtest.Load(t, stages(), dir, set...).Pipelines[0], runtest.Launch(t, dir)
	r, err := run.Open(t.Context(), p, run.Options{Options: stage.Options{Ballots: true, Fitted: filepath.Join(dir, "fitted")}, Launch: start})
	if err != nil {
		t.Fatal(err)
	}
	return r, p, start
}

// answer answers the other texts, including one unusable row, and returns their number.
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

func wanted(r outcome.Result) bool { return r.Line != known+8 }

// TestWithout: an election held again without a voter decides as a run without the voter, and the
// run forgets its items. Unusable rows stay unchanged, and so does what the election has learnt.
func TestWithout(t *testing.T) {
	for _, use := range []string{"soft", "majority", "leader"} {
		election := pipeline.Override{Target: "var.election", Value: use}
		r, p, start := open(t, election)
		w, err := tune.NewElectionsWithout(t.Context(), r, p, start)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[int]outcome.Result{"near": {}, "centroid": {}, "word": {}}
		rows := answer(t, r, func(batch []outcome.Result) error {
			err := w.Elect(t.Context(), batch, wanted, func(voter string, answered, without outcome.Result) {
				if got[voter][answered.Line] = without; answered.Line != without.Line {
					t.Errorf("line %d was compared with %d", answered.Line, without.Line)
				}
			})
			for _, one := range batch {
				if r.Record(one.Line) != nil {
					t.Errorf("the run still holds line %d", one.Line)
				}
			}
			return err
		})
		for voter, results := range got {
			if len(results) != rows-1 {
				t.Errorf("%s without %s: %d items, want %d", use, voter, len(results), rows-1)
			}
			less, _, _ := open(t, election, pipeline.Override{Target: "sample." + voter + ".enabled", Value: "false"})
			answer(t, less, func(batch []outcome.Result) error {
				for _, want := range batch {
					got := results[want.Line]
					if wanted(want) && (got.Answer != want.Answer || got.Agreement != want.Agreement || got.Flagged != want.Flagged || (got.Failure == nil) != (want.Failure == nil)) {
						t.Errorf("%s without %s, line %d: %q, %v, %v; want %q, %v, %v", use, voter, want.Line,
							got.Answer, got.Agreement, got.Flagged, want.Answer, want.Agreement, want.Flagged)
					}
				}
				return nil
			})
		}
	}
}

// TestOneVoter: a pipeline with one voter has no elections without a voter. The run forgets its
// ballots nonetheless.
func TestOneVoter(t *testing.T) {
	off := func(voter string) pipeline.Override {
		return pipeline.Override{Target: "sample." + voter + ".enabled", Value: "false"}
	}
	r, p, start := open(t, off("near"), off("word"))
	w, err := tune.NewElectionsWithout(t.Context(), r, p, start)
	if err != nil {
		t.Fatal(err)
	}
	answer(t, r, func(batch []outcome.Result) error {
		err := w.Elect(t.Context(), batch, wanted, func(voter string, _, _ outcome.Result) { t.Errorf("%s was left out", voter) })
		for _, one := range batch {
			if r.Record(one.Line) != nil {
				t.Errorf("the run still holds line %d", one.Line)
			}
		}
		return err
	})
}

var builtin = workspace.Serve(stages())

// TestEvaluate: what a voter adds, according to an evaluation, is the difference to the evaluation
// of a pipeline without the voter, even if the election learns from votes.
func TestEvaluate(t *testing.T) {
	for _, use := range []string{"soft", "leader"} {
		path := filepath.Join(runtest.Folder(t, files()), runtest.File)
		evaluate := func(set ...pipeline.Override) eval.Report {
			p, err := workspace.Open(t.Context(), path, workspace.Options{
				Builtin: builtin, State: t.TempDir(), Input: filepath.Join(filepath.Dir(path), "input.tsv"),
				Set: append(set, pipeline.Override{Target: "var.election", Value: use}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			found, err := p.Evaluate(t.Context(), eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return found.Rows[0].Report
		}
		whole := evaluate()
		if whole.Failed > 0 || len(whole.Voters) != 3 {
			t.Fatalf("%s: %+v", use, whole)
		}
		for _, v := range whole.Voters {
			less := evaluate(pipeline.Override{Target: "sample." + v.Name + ".enabled", Value: "false"})
			if v.Adds == nil || math.Abs(v.Adds.Difference()-(whole.Accuracy-less.Accuracy)) > 1e-9 {
				t.Errorf("%s: %s adds %+v to %v, and without it there are %v", use, v.Name, v.Adds, whole.Accuracy, less.Accuracy)
			}
		}
	}
}
