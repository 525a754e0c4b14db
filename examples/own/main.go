// Command racflow-own is racflow with its own stage linked in. It needs no plugin folder and no lock,
// and is one file to hand out. Each stage is still a separate process; the program starts it by
// executing itself.
//
//	go run ./examples/own run examples/own/loud.hcl
package main

import (
	"context"
	"os"
	"strings"

	"github.com/racflow/racflow/engine/cli"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
)

func main() { os.Exit(cli.Run(append(plugins.All(), loud()), plugins.Commands()...)) }

type config struct {
	Label string `config:"label,required" doc:"The label of loud texts."`
}

// loud describes a voter with one rule: a text that shouts is a complaint.
func loud() sdk.Stage {
	return sdk.SampleStage("loud", "Votes for a label where a text shouts.",
		func(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) { return c, nil }, sdk.Reads(sdk.ColumnText))
}

func (c config) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if strings.Contains(item.Text, "!!") || item.Text == strings.ToUpper(item.Text) {
			samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: c.Label, Weight: 1}}}}
		}
	}
	return samples, nil
}
