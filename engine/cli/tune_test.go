package cli

import (
	"context"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// modelConfig is the config of a voter that imitates a language model.
type modelConfig struct {
	Rows sdk.Path `config:"rows,required" doc:"Texts with their labels."`
}

// modelPlugin is the main function of a plugin with a voter that knows the labels and errs like a
// language model: it is right on 85 % of the items, whatever the sample, and names no label at all on
// a fifth of the others.
func modelPlugin() {
	stage := sdk.SampleStage("model", "", func(_ context.Context, s sdk.Setup, c modelConfig) (sdk.Sampler, error) {
		rows, err := readLabels(string(c.Rows))
		return &fakeModel{rows, slices.Compact(slices.Sorted(maps.Values(rows))), s.Samples}, err
	}, sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.PreferBatch(16))
	serve.Plugin(sdk.Plugin{Name: "model", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

type fakeModel struct {
	rows   map[string]string // label by text
	labels []string
	n      int
}

func (m *fakeModel) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		h := fnv.New64a()
		h.Write([]byte("model " + item.Text))
		draw := h.Sum64()
		label := m.rows[item.Text]
		switch chance := draw % 1000; {
		case chance < 850:
		case chance < 880:
			label = "no label of ours"
		default:
			label = m.labels[draw/1000%uint64(len(m.labels))]
		}
		for range m.n {
			all[i] = append(all[i], sdk.Sample{
				Answers: []sdk.Answer{{Label: label, Weight: 1}}, Usage: sdk.Usage{InputTokens: 1000, OutputTokens: 4},
			})
		}
	}
	return all, nil
}

func readLabels(path string) (map[string]string, error) {
	r, err := source.Open(path, source.Form{Format: source.TSV}, source.Mapping{ID: "id", Text: "text", Label: "label"}, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	rows := map[string]string{}
	for {
		row, err := r.Next()
		if err != nil {
			return rows, nil
		}
		rows[row.Text] = row.Label
	}
}

const cascade = `
variable "train" { type = path }
variable "rows" { type = path }
variable "embedder" { default = "minilm" }
variable "election" { default = "soft" }
variable "margin_below" { default = 2 }
variable "weights" {
  type    = map(number)
  default = {}
}
variable "accuracy" {
  type    = map(number)
  default = {}
}
knowledge "utterances" {
  source { path = var.train }
  embed { use = var.embedder }
  store { use = "local" }
}
pipeline "intent" {
  retrieve "near" { from = knowledge.utterances }
  sample "knn" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "llm" {
    use  = "model/model"
    when = "margin < var.margin_below"
    n    = 3
    price {
      input  = 2
      output = 8
    }
    config { rows = var.rows }
  }
  elect "intent" {
    use    = var.election
    accept = "answer in labels"
    config "soft" { weights = var.weights }
    config "majority" { weights = var.weights }
    config "weighted" { accuracy = var.accuracy }
  }
}
`

// tuneSet is a folder with the cascade and rows to tune and to report on.
type tuneSet struct {
	dir         string
	args        []string // of all calls
	tune, other string   // files of rows
}

// newTuneSet splits rows into two halves.
func newTuneSet(t testing.TB, train, rows string, args ...string) tuneSet {
	t.Helper()
	s := tuneSet{dir: t.TempDir(), tune: "tune.tsv", other: "other.tsv"}
	s.args = append([]string{"--plugins", ".", "-var", "train=" + train, "-var", "rows=" + rows}, args...)
	lines := strings.SplitAfter(readFile(t, "", rows), "\n")
	halves := [2]strings.Builder{}
	for i, line := range lines[1:] {
		halves[i%2].WriteString(line)
	}
	writeAll(t, s.dir, map[string]string{
		s.tune: lines[0] + halves[0].String(), s.other: lines[0] + halves[1].String(), "cascade.hcl": cascade,
	})
	linkPlugin(t, s.dir, "model")
	return s
}

// call runs a verb on the cascade.
func (s tuneSet) call(t testing.TB, verb string, args ...string) (stdout, stderr string) {
	t.Helper()
	return good(t, racflow(t, s.dir, slices.Concat([]string{verb}, s.args, args, []string{"cascade.hcl"})...))
}

// sharedData returns the path of a file of the public data beside the checkout; it skips the test if
// the file is missing.
func sharedData(t testing.TB, name string) string {
	t.Helper()
	path := absolute(t, filepath.Join("../../../shared/data", name))
	if _, err := os.Stat(path); err != nil {
		t.Skip("the data is not here: ", err)
	}
	return path
}
