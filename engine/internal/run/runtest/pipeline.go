package runtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// VoteFunc is a voter as a function from an item to labels. An error fails the row.
type VoteFunc func(sdk.Item) ([]string, error)

// Sample votes by calling f.
func (f VoteFunc) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	failed := sdk.RowErrors{}
	for i, item := range b.Items {
		labels, err := f(item)
		if err != nil {
			failed[i] = err
		}
		for _, label := range labels {
			samples[i] = append(samples[i], sdk.Sample{Answers: []sdk.Answer{{Label: label, Weight: 1}}})
		}
	}
	if len(failed) > 0 {
		return samples, failed
	}
	return samples, nil
}

// Voter returns a voter stage that calls a function.
func Voter(name string, f VoteFunc, reads ...sdk.Column) sdk.Stage {
	open := func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return f, nil }
	return sdk.SampleStage(name, "A voter of the test.", open, sdk.Reads(append(reads, sdk.ColumnText)...))
}

// Always votes for the same label.
func Always(label string) VoteFunc {
	return func(sdk.Item) ([]string, error) { return []string{label}, nil }
}

// Stages returns the stages of the engine's tests, and more.
func Stages(more ...sdk.Stage) enginetest.Catalog { return append(enginetest.Stages(), more...) }

const rows = "text\tlabel\nred apple\tfruit\ngreen apple\tfruit\nyellow banana\tfruit\nfast car\tvehicle\nslow bus\tvehicle\nold train\tvehicle\n"

// poisonRows has rows that an embedder of the tests cannot handle.
const poisonRows = "text\tlabel\none\ta\ntwo@NaN\ta\nthree\tb\nfour@5\tb\nfive\tb\nsix\tb\n"

// hangRows returns rows, including a row on which an embedder of the tests hangs.
func hangRows() string {
	var rows strings.Builder
	rows.WriteString("text\n")
	for i := range 200 {
		what := fmt.Sprint("text ", i)
		if i == 76 {
			what = "hang"
		}
		fmt.Fprintln(&rows, what)
	}
	return rows.String()
}

// KnowledgeBlock is the knowledge block of Pipeline.
const KnowledgeBlock = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
`

// Pipeline opens a pipeline with the blocks in body. replace has pairs of replacements for the
// knowledge block.
func Pipeline(t testing.TB, c enginetest.Catalog, body string, replace ...string) *run.Run {
	t.Helper()
	return PipelineWith(t, c, run.Options{}, body, replace...)
}

// PipelineWith is Pipeline with further options.
func PipelineWith(t testing.TB, c enginetest.Catalog, o run.Options, body string, replace ...string) *run.Run {
	t.Helper()
	return must.Get(Open(t, c, o, Files(body, replace...)))(t)
}

// Files returns the pipeline file and the rows of its knowledge.
func Files(body string, replace ...string) map[string]string {
	block := strings.NewReplacer(replace...).Replace(KnowledgeBlock)
	return map[string]string{
		"rows.tsv": rows, "bare.tsv": "text\nhello\n", "poison.tsv": poisonRows, "hang.tsv": hangRows(),
		File: block + "pipeline \"p\" {\n" + body + "\n}\n",
	}
}

// Unlabelled are replacements that make the knowledge one row without a label.
var Unlabelled = []string{`"rows.tsv"`, `"bare.tsv"`}

// Taken runs rows through the pipeline, and returns their results and totals.
func Taken(t testing.TB, r *run.Run, next func() (source.Row, error)) (all []outcome.Result, totals outcome.Totals) {
	t.Helper()
	totals, err := r.Items(t.Context(), next, nil, func(batch []outcome.Result) error {
		all = append(all, batch...)
		return nil
	})
	must.Do(t, err)
	return all, totals
}

// Answered returns the results of texts.
func Answered(t testing.TB, r *run.Run, texts ...string) []outcome.Result {
	t.Helper()
	all, _ := Taken(t, r, Feed(texts...))
	return all
}

// Answers runs texts through and returns "answer" or "!error" of each.
func Answers(t testing.TB, r *run.Run, texts ...string) []string {
	t.Helper()
	var all []string
	results, totals := Taken(t, r, Feed(texts...))
	for i, result := range results {
		if result.Text != texts[i] {
			t.Errorf("result %d is of %q, want %q", i, result.Text, texts[i])
		}
		if result.Failure != nil {
			all = append(all, "!"+result.Failure.Error())
		} else {
			all = append(all, result.Answer)
		}
	}
	if totals.Items != len(texts) {
		t.Errorf("%d items counted, want %d", totals.Items, len(texts))
	}
	return all
}

// Want compares answers.
func Want(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("answers %q, want %q", got, want)
	}
}

// Found runs one text through and returns the result.
func Found(t testing.TB, r *run.Run, text string) outcome.Result {
	t.Helper()
	return Answered(t, r, text)[0]
}
