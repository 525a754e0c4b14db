package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type weight struct {
	Weight float64 `config:"weight" default:"1" doc:"What a word counts."`
}

// Words is a voter that learns how often each label has each word. A row with the label
// "unlearnable" fails that, and one with "deadly" ends its process.
func Words() sdk.Stage {
	return sdk.SampleStage("words", "Votes by the labels that words had.", func(_ context.Context, setup sdk.Setup, c weight) (sdk.Sampler, error) {
		v := &words{weight: c.Weight, file: filepath.Join(setup.StateDir, "labels.json")}
		raw, err := os.ReadFile(v.file)
		if errors.Is(err, fs.ErrNotExist) {
			return v, nil
		}
		return v, errors.Join(err, json.Unmarshal(raw, &v.labels))
	}, sdk.Reads(sdk.ColumnText), sdk.Fits(sdk.ColumnText))
}

type words struct {
	weight float64
	labels map[string]map[string]int // by word
	file   string                    // that keeps them
}

func (v *words) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	v.labels = map[string]map[string]int{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			switch row.Label {
			case "unlearnable":
				return sdk.Invalid(errors.New("row " + row.ID + " cannot be learnt from"))
			case "deadly":
				os.Exit(1)
			}
			for word, n := range wordsOf(row.Text, "standard") {
				if v.labels[word] == nil {
					v.labels[word] = map[string]int{}
				}
				v.labels[word][row.Label] += n
			}
		}
	}
	raw, err := json.Marshal(v.labels)
	return errors.Join(err, os.WriteFile(v.file, raw, 0o600))
}

func (v *words) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		var votes ballot.Tally
		for _, word := range slices.Sorted(maps.Keys(wordsOf(item.Text, "standard"))) { // labels that tie stand in the same order each time
			for _, label := range slices.Sorted(maps.Keys(v.labels[word])) {
				votes.Add(label, v.weight*float64(v.labels[word][label]))
			}
		}
		if answers := votes.Shares(); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}
