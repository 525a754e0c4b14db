package chat

import (
	"context"
	"errors"
	"slices"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Shots     int      `config:"shots" default:"5" min:"0" doc:"How many of the nearest candidates are turns of the chat."`
	Labels    string   `config:"labels" default:"neighbours" one_of:"neighbours,all" doc:"Which labels are allowed: those of the candidates, the nearest first, or all of the knowledge, sorted, behind which those of the candidates are named again."`
	Reasoning bool     `config:"reasoning" default:"true" doc:"Whether the model gives its reasons before the label."`
	Answer    string   `config:"answer" default:"label" one_of:"label,list" doc:"Whether the model answers with one label, or with a list of labels, the likeliest first, that is empty where none fits."`
	None      string   `config:"none" doc:"The answer where none of the labels fits; by default it is not allowed."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; turns beyond it are left out. 0: no bound."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the system message with, in place of the built-in one; it may use .Labels, .Ranked, .All, .Near, .None, .List, .Reasoning, .Shots and join."`
}

// reasoningProperty is the property of the answer that comes before the label.
const reasoningProperty = "reasoning"

// Stage describes the prompter.
func Stage() sdk.Stage {
	return sdk.PromptStage("chat", "Writes a chat with the allowed labels, the likeliest first, and neighbours as turns; the answer is a JSON object.",
		open, sdk.Revision("2"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnLabels), sdk.Validates(config.check))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Prompter, error) {
	t, err := c.load()
	if err != nil {
		return nil, err
	}
	p := &prompter{config: c, Template: t, fields: []string{sdk.LabelProperty}}
	if c.list() {
		p.fields = []string{sdk.LabelsProperty}
	}
	if c.Reasoning {
		p.fields = slices.Insert(p.fields, 0, reasoningProperty)
	}
	return p, nil
}

func (c config) load() (fewshot.Template, error) {
	return fewshot.Load("template", c.Template, defaultTemplate, samples()...)
}

func (c config) check() error {
	_, err := c.load()
	if c.list() && c.None != "" {
		err = errors.Join(err, &sdk.ArgumentError{Argument: "none", Err: errors.New(`with answer = "list" an empty list says that none of the labels fits; leave none out`)})
	}
	return err
}

func (c config) list() bool { return c.Answer == "list" }

type prompter struct {
	fewshot.Template
	config config
	fields []string
}

// Prompt implements sdk.Prompter.
func (p *prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) {
		prompt, err := p.write(item, b.Labels)
		return []sdk.Prompt{prompt}, err
	})
}

func (p *prompter) write(item sdk.Item, all []string) (sdk.Prompt, error) {
	data := p.allowed(item.Candidates, all)
	shots := fewshot.First(item.Candidates, p.config.Shots)
	slices.Reverse(shots)
	prompt := sdk.Prompt{Labels: data.Labels, None: p.config.None, Fields: p.fields}
	if data.All != nil { // in the same order for all items: services put a schema with them before the prompt
		prompt.Labels = data.All
	}
	return fewshot.Fit(len(shots), p.config.MaxTokens, func(examples int) (sdk.Prompt, int, error) {
		data.Shots = examples
		system, err := p.Write(data)
		if err != nil {
			return sdk.Prompt{}, 0, err
		}
		prompt.Messages = p.messages(system, shots[len(shots)-examples:], item.Text)
		return prompt, fewshot.MessageTokens(prompt.Messages), nil
	})
}

// allowed returns the labels that may be answered, for the template.
func (p *prompter) allowed(candidates []sdk.Candidate, all []string) Data {
	data := Data{None: p.config.None, List: p.config.list(), Reasoning: p.config.Reasoning}
	var labels []string
	seen := map[string]bool{"": true}
	add := func(label string) {
		if !seen[label] {
			seen[label] = true
			labels = append(labels, label)
		}
	}
	for i := range candidates {
		add(candidates[i].Label)
	}
	data.Near = fewshot.Allowed(slices.Clone(labels), p.config.None)
	data.Ranked = len(labels) > 0
	if p.config.Labels == "all" || !data.Ranked {
		for _, label := range all {
			add(label)
		}
		data.All = fewshot.Allowed(all, p.config.None)
	}
	data.Labels = fewshot.Allowed(labels, p.config.None)
	return data
}
