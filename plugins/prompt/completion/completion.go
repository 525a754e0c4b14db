package completion

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

type config struct {
	K        int      `config:"k" default:"20" doc:"How many of the nearest candidates stand in the prompt as examples."`
	Random   int      `config:"random" default:"10" doc:"How many random examples stand before them."`
	Labels   bool     `config:"labels" default:"true" doc:"Whether the prompt lists all labels of the knowledge."`
	Template sdk.Path `config:"template" doc:"A Go template to write the prompt with, in place of the built-in one; it may use .Text, .Random, .Neighbours, .Labels and join."`
}

// Stage describes the prompter.
func Stage() sdk.Stage {
	return sdk.PromptStage("completion", "Writes a few-shot prompt of random and neighbouring examples that a model completes with a label.",
		open, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnRandom, sdk.ColumnLabels))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Prompter, error) {
	var faults []error
	if c.K < 0 {
		faults = append(faults, &sdk.ArgumentError{Argument: "k", Err: errors.New("it must be at least 0")})
	}
	if c.Random < 0 {
		faults = append(faults, &sdk.ArgumentError{Argument: "random", Err: errors.New("it must be at least 0")})
	}
	t, err := loadTemplate(c.Template)
	if err != nil {
		faults = append(faults, &sdk.ArgumentError{Argument: "template", Err: err})
	}
	return &prompter{c, t}, errors.Join(faults...)
}

type prompter struct {
	config config
	prompt prompt
}

// Random implements sdk.Drawer.
func (p *prompter) Random() sdk.Draw { return sdk.Draw{Count: p.config.Random} }

// Fingerprint changes with the template, whose text is no argument.
func (p *prompter) Fingerprint() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(p.prompt.text)))
}

func (p *prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	var labels []string
	if p.config.Labels {
		labels = b.Labels
	}
	prompts := make([][]sdk.Prompt, len(b.Items))
	failed := sdk.RowErrors{}
	for i, item := range b.Items {
		neighbours := shots(item.Candidates, p.config.K)
		slices.Reverse(neighbours)
		written, err := p.prompt.write(Data{
			Text:       oneLine(item.Text),
			Random:     shots(item.Random, p.config.Random),
			Neighbours: neighbours,
			Labels:     labels,
		})
		if err != nil {
			failed[i] = err
			continue
		}
		prompts[i] = []sdk.Prompt{written}
	}
	if len(failed) > 0 {
		return prompts, failed
	}
	return prompts, nil
}

// shots returns the first n candidates that can serve as examples.
func shots(candidates []sdk.Candidate, n int) []Shot {
	var all []Shot
	for _, c := range candidates {
		if len(all) < n && c.Text != "" && c.Label != "" {
			all = append(all, Shot{Text: oneLine(c.Text), Label: oneLine(c.Label)})
		}
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
