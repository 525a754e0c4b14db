// Command racflow-plugin-keywords is a third-party plugin: a voter that looks for words. It votes for
// a label if an item contains the label's word.
package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

var version = "0.1.0" // a release puts the tag's version here

type config struct {
	Labels map[string]string `config:"labels,required" doc:"Word to label."`
}

type voter struct {
	config
	words []string // sorted, so that the same item always gets the same vote
}

func (v voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		text := strings.ToLower(item.Text)
		for _, word := range v.words {
			if strings.Contains(text, word) {
				vote := sdk.Answer{Label: v.Labels[word], Weight: 1}
				samples[i] = append(samples[i], sdk.Sample{Answers: []sdk.Answer{vote}})
			}
		}
	}
	return samples, nil
}

func stage() sdk.Stage {
	return sdk.SampleStage("words", "Votes for labels whose words an item holds.",
		func(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) {
			return voter{c, slices.Sorted(maps.Keys(c.Labels))}, nil
		}, sdk.Reads(sdk.ColumnText))
}

func main() {
	serve.Plugin(sdk.Plugin{Name: "keywords", Version: version, Stages: []sdk.Stage{stage()}})
}
