package answer

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Passages  int      `config:"passages" default:"20" min:"0" doc:"Most passages of a prompt; 0: no bound. A knowledge that is shown as a whole is not bounded."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; the last passages are left out until it fits. 0: no bound."`
	Context   bool     `config:"context" default:"true" doc:"Whether a passage shows its context beside its text."`
	Citations bool     `config:"citations" default:"true" doc:"Whether the answer has to cite passages."`
	None      string   `config:"none" default:"The passages do not answer this." doc:"The answer where the passages do not answer the question; empty: not allowed."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the instructions with, in place of the built-in one; it may use .None, .Context, .Citations and join."`
}

// Data is what a template of the instructions can use. It is the same for all items.
type Data struct {
	None      string // the answer that the passages do not answer the question; empty: not allowed
	Context   bool   // passages show their contexts
	Citations bool   // the answer is to cite passages
}

//go:embed default.tmpl
var defaultTemplate string

// acknowledged is the assistant's turn between the passages and the question.
const acknowledged = "I have read the passages. What is the question?"

// Stage describes the prompter.
func Stage() sdk.Stage {
	return sdk.PromptStage("answer", "Writes a chat that has a question answered from numbered passages, which the answer cites.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts), sdk.Validates(config.check))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Prompter, error) {
	return c.prompter()
}

// prompter loads the template and writes the instructions with it.
func (c config) prompter() (*prompter, error) {
	data := Data{None: c.None, Context: c.Context, Citations: c.Citations}
	t, err := fewshot.Load("template", c.Template, defaultTemplate, data, Data{"none", true, true}, Data{})
	if err != nil {
		return nil, err
	}
	instructions, err := t.Write(data)
	return &prompter{config: c, Template: t, instructions: instructions}, err
}

func (c config) check() error {
	_, err := c.prompter()
	return err
}

type prompter struct {
	fewshot.Template
	config       config
	instructions string
}

// Prompt implements sdk.Prompter.
func (p *prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) {
		passages, whole := p.shown(item.Candidates)
		if len(passages) == 0 {
			return nil, nil
		}
		prompt, err := p.write(passages, whole, item.Text)
		return []sdk.Prompt{prompt}, err
	})
}

// shown returns the candidates that become passages, and whether they are a knowledge
// as a whole, which nothing has searched.
func (p *prompter) shown(candidates []sdk.Candidate) (passages []*sdk.Candidate, whole bool) {
	whole = true
	for i := range candidates {
		c := &candidates[i]
		whole = whole && math.IsNaN(float64(c.Dense)) && math.IsNaN(float64(c.Lexical))
		if strings.TrimSpace(c.Text) != "" {
			passages = append(passages, c)
		}
	}
	if most := p.config.Passages; !whole && most > 0 && len(passages) > most {
		passages = passages[:most]
	}
	return passages, whole
}

// write makes the prompt with as many of the passages as fit.
func (p *prompter) write(passages []*sdk.Candidate, whole bool, question string) (sdk.Prompt, error) {
	texts := make([]string, len(passages))
	for i, c := range passages {
		texts[i] = p.passage(i+1, c)
	}
	least := 0 // tokens with one passage
	prompt, err := fewshot.Fit(len(texts), p.config.MaxTokens, func(n int) (sdk.Prompt, int, error) {
		prompt := sdk.Prompt{None: p.config.None, Passages: []string{}, Messages: []sdk.Message{
			{Role: sdk.MessageSystem, Text: p.instructions, Shared: true},
			{Role: sdk.MessageUser, Text: strings.Join(texts[:n], "\n\n"), Shared: whole},
			{Role: sdk.MessageAssistant, Text: acknowledged},
			{Role: sdk.MessageUser, Text: strings.TrimSpace(question)},
		}}
		for _, c := range passages[:n] {
			if p.config.Citations {
				prompt.Passages = append(prompt.Passages, c.ID)
			}
		}
		tokens := fewshot.MessageTokens(prompt.Messages)
		switch n {
		case 0: // useless, and refused below
			tokens = 0
		case 1:
			least = tokens
		}
		return prompt, tokens, nil
	})
	if err == nil && prompt.Messages[1].Text == "" {
		return sdk.Prompt{}, sdk.Invalid(fmt.Errorf("the prompt is about %d tokens long with its first passage alone, max_tokens is %d; raise it, or cut the documents into smaller chunks",
			least, p.config.MaxTokens))
	}
	return prompt, err
}
