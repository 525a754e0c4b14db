package completion

import (
	"context"
	"slices"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	K         int      `config:"k" default:"20" min:"0" doc:"How many of the nearest candidates are examples in the prompt."`
	Random    int      `config:"random" default:"10" min:"0" doc:"How many random examples stand before them."`
	Redraw    string   `config:"redraw" default:"item" one_of:"item,sample,run" doc:"When the random examples are drawn anew: for each item, each of its samples, or only once in a run."`
	Seed      int      `config:"seed" default:"0" min:"0" doc:"Another seed draws other examples."`
	Labels    bool     `config:"labels" default:"true" doc:"Whether the prompt lists all labels of the knowledge."`
	None      string   `config:"none" doc:"The answer where none of the labels fits; by default it is not allowed."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; neighbours and random examples beyond it are left out. 0: no bound."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the prompt with, in place of the built-in one; it may use .Text, .Random, .Neighbours, .Labels, .None and join."`
}

// Stage describes the prompter.
func Stage() sdk.Stage {
	return sdk.PromptStage("completion", "Writes a few-shot prompt of random and neighbouring examples that a model completes with a label.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnRandom, sdk.ColumnLabels), sdk.Validates(config.check))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Prompter, error) {
	t, err := c.load()
	if err != nil {
		return nil, err
	}
	p := &prompter{config: c, Template: t, draws: 1}
	if c.Redraw == "sample" {
		p.draws = max(1, setup.Samples)
	}
	return p, nil
}

func (c config) load() (fewshot.Template, error) {
	return fewshot.Load("template", c.Template, defaultTemplate, samples()...)
}

func (c config) check() error {
	_, err := c.load()
	return err
}

type prompter struct {
	fewshot.Template
	config config
	draws  int // of random examples, and so prompts, per item
}

// Random implements sdk.Drawer.
func (p *prompter) Random() sdk.Draw {
	return sdk.Draw{Count: p.config.Random * p.draws, Parts: p.draws, Shared: p.config.Redraw == "run", Seed: uint64(p.config.Seed)}
}

// Prompt implements sdk.Prompter.
func (p *prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	allowed := fewshot.Allowed(b.Labels, p.config.None)
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) { return p.write(item, allowed) })
}

// write makes the prompts of an item.
func (p *prompter) write(item sdk.Item, allowed []string) ([]sdk.Prompt, error) {
	neighbours := fewshot.First(item.Candidates, p.config.K)
	slices.Reverse(neighbours)
	random := fewshot.First(item.Random, len(item.Random))
	data := Data{Text: fewshot.OneLine(item.Text), None: p.config.None}
	if p.config.Labels {
		data.Labels = allowed
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

// part returns the n random examples of a draw. Where the knowledge has too few for all
// draws, examples repeat.
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
