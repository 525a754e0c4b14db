package prompt

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// This file writes few-shot prompts that a language model completes with a label, after RAGE (Saha, "RAGE - Retrieval
// Augmented Generation and Election Algorithm for Few-shot Intent Classification", 2023).
//
// After an instruction, and optionally the list of labels, come labelled examples. First come random examples (the
// paper's l; here the argument random), then the item's k nearest neighbours from the farthest to the nearest, so
// that the most similar example is next to the item. The prompt ends where the model writes the label, up to a
// newline. The paper's prompt is the examples alone, under other names; pipelines/rage.tmpl is a template for it.
//
// The argument redraw says when new random examples are drawn:
//
//	item    for each item: its samples share one prompt
//	sample  for each sample, as in Algorithm 1 of the paper: an item has as
//	        many prompts as a model below is asked for samples
//	run     never: all prompts begin with the same examples, so that a server
//	        that caches prefixes computes theirs once
//
// The draw depends only on the item's id (or its text if it has none), the seed and the knowledge. If an entry of the
// knowledge is added, changed or removed, only prompts that show it, or showed it, change; all others are answered
// from the cache. With redraw = "sample" no example is drawn twice for an item as long as the knowledge has enough.
//
// max_tokens keeps a prompt within a budget: first the farthest neighbours are left out, then the last of the random
// examples. Tokens are estimated at four characters each; use a lower limit if the texts are not English.
//
// A file can replace the template: a Go text/template with the fields of Data and of fewshot.Example (Text and Label)
// and the function join:
//
//	{{join .Labels ", "}}
//	{{range .Random}}{{.Text}} -> {{.Label}}
//	{{end}}{{range .Neighbours}}{{.Text}} -> {{.Label}}
//	{{end}}{{.Text}} ->
//
// Where labels are sets, an example shows all of its labels, separated by "; ". The answer has the same form.
//
// This file does not choose the examples: the engine sends candidates and random entries.

type completionConfig struct {
	K         int      `config:"k" default:"20" min:"0" doc:"How many of the nearest candidates are examples in the prompt."`
	Random    int      `config:"random" default:"10" min:"0" doc:"How many random examples stand before them."`
	Redraw    string   `config:"redraw" default:"item" one_of:"item,sample,run" doc:"When the random examples are drawn anew: for each item, each of its samples, or only once in a run."`
	Seed      int      `config:"seed" default:"0" min:"0" doc:"Another seed draws other examples."`
	Labels    bool     `config:"labels" default:"true" doc:"Whether the prompt lists all labels of the knowledge."`
	None      string   `config:"none" doc:"The answer where none of the labels fits; by default it is not allowed."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; neighbours and random examples beyond it are left out. 0: no bound."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the prompt with, in place of the built-in one; it may use .Text, .Random, .Neighbours, .Labels, .Meanings, .None, .Many and join."`
}

// Completion describes the prompter.
func Completion() sdk.Stage {
	return sdk.PromptStage("completion", "Writes a few-shot prompt of random and neighbouring examples that a model completes with a label.",
		openCompletion, sdk.Revision("1"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnRandom, sdk.ColumnLabels), sdk.Validates(completionConfig.check))
}

func openCompletion(_ context.Context, setup sdk.Setup, c completionConfig) (sdk.Prompter, error) {
	t, err := c.load(setup.Labels)
	if err != nil {
		return nil, err
	}
	p := &completionPrompter{config: c, Template: t, draws: 1, many: setup.Labels.Many}
	if c.Redraw == "sample" {
		p.draws = max(1, setup.Samples)
	}
	return p, nil
}

func (c completionConfig) load(f sdk.LabelForm) (fewshot.Template, error) {
	text := completionDefaultTemplate
	if f.Many {
		text = completionSets.Replace(text)
	}
	return fewshot.Load("template", c.Template, text, completionSamples()...)
}

func (c completionConfig) check() error {
	_, err := c.load(sdk.LabelForm{})
	return err
}

type completionPrompter struct {
	fewshot.Template
	config completionConfig
	draws  int  // number of draws of random examples, and so of prompts, per item
	many   bool // labels are sets
}

// Random implements sdk.Drawer.
func (p *completionPrompter) Random() sdk.Draw {
	return sdk.Draw{Count: p.config.Random * p.draws, Parts: p.draws, Shared: p.config.Redraw == "run", Seed: uint64(p.config.Seed)}
}

// Prompt implements sdk.Prompter.
func (p *completionPrompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	allowed := fewshot.Allowed(b.Labels, p.config.None)
	meanings := fewshot.Meanings(b.Described)
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) { return p.write(item, allowed, meanings) })
}

// write writes the prompts of an item.
func (p *completionPrompter) write(item sdk.Item, allowed []string, meanings map[string]string) ([]sdk.Prompt, error) {
	neighbours := fewshot.First(item.Candidates, p.config.K)
	slices.Reverse(neighbours)
	random := fewshot.Examples(item.Random)
	data := completionData{Text: fewshot.OneLine(item.Text), None: p.config.None, Many: p.many}
	if p.config.Labels {
		data.Labels, data.Meanings = allowed, meanings
	}
	prompts := make([]sdk.Prompt, p.draws)
	for draw := range prompts {
		some := part(random, draw, p.config.Random)
		var err error
		prompts[draw], err = fewshot.Fit(len(some)+len(neighbours), p.config.MaxTokens, func(examples int) (sdk.Prompt, int, error) {
			data.Random = some[:min(examples, len(some))]
			data.Neighbours = neighbours[len(neighbours)-(examples-len(data.Random)):]
			text, err := p.Write(data)
			return sdk.Prompt{Text: text, Labels: allowed, None: p.config.None}, fewshot.Tokens(text), err
		})
		if err != nil {
			return nil, err
		}
	}
	return prompts, nil
}

// part returns the n random examples of a draw. If the knowledge has too few for all draws, examples repeat.
func part(random []fewshot.Example, draw, n int) []fewshot.Example {
	if len(random) <= n {
		return random
	}
	chosen := make([]fewshot.Example, n)
	for i := range chosen {
		chosen[i] = random[(draw*n+i)%len(random)]
	}
	return chosen
}

//go:embed completion.tmpl
var completionDefaultTemplate string

// completionSets adapts the built-in template to label sets.
var completionSets = strings.NewReplacer(
	"Every text has exactly one label. Complete the last line with the label that fits the last text best: write the label and nothing else.",
	`A text has one label or several, with "; " between them. Complete the last line with all labels that apply to the last text, and write nothing else.`,
)

// completionData holds the fields for a template. Runs of white space in its texts are one space.
type completionData struct {
	Text       string            // of the item
	Random     []fewshot.Example // random examples
	Neighbours []fewshot.Example // nearest last
	Labels     []string          // all labels of the knowledge, sorted; empty with labels = false
	Meanings   map[string]string // descriptions by label; empty if there are none
	None       string            // the answer that no label fits; empty: not allowed
	Many       bool              // labels are sets, with "; " between them
}

// completionSamples are the data for testing templates.
func completionSamples() []any {
	shots := []fewshot.Example{{Text: "text", Label: "label"}}
	return []any{completionData{Text: "text", Random: shots, Neighbours: shots, Labels: []string{"label"}, Meanings: map[string]string{"label": "meaning"}, None: "none", Many: true}, completionData{}}
}
