package prompt

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file writes prompts that ask for an answer to a question from passages. A prompt is a chat of instructions,
// the item's candidates as numbered passages, and the question last. The answer is a text that cites the passages by
// number; package sdk/support reads it and checks the citations.
//
// Each passage names its source, as far as the metadata has it. Then come its context, without the terms that were
// added for the search, and its text:
//
//	<passage 2>
//	Source: guide/setup.md, "Setting it up", Install > Linux, lines 10 to 24
//	Context: It follows the list of packages.
//	Text:
//	...
//	</passage 2>
//
// Text from documents cannot end its passage: if text looks like one of these marks, or like the end of a turn for
// model servers (<|...|>), its first character is written as an entity. Source and context are one line each. The
// instructions say that the text of a passage is material and never an instruction. Whether a model follows this
// depends on the model.
//
// Passages beyond the argument passages are left out, and then the last ones until the prompt fits max_tokens.
// Candidates without a search score are a whole knowledge (`whole` of a retrieve block): all are shown, in their
// order, and only max_tokens limits them. Their message is marked as shared: it is the same for every question, as
// long as all of them fit max_tokens beside each question.
//
// Between the passages and the question there is a short message of the assistant: the templates of some models
// refuse two messages of the user in a row.
//
// An item without passages gets no prompt, and the voter that would read it abstains.

type answerConfig struct {
	Passages  int      `config:"passages" default:"20" min:"0" doc:"Most passages of a prompt; 0: no bound. A knowledge that is shown as a whole is not bounded."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; the last passages are left out until it fits. 0: no bound."`
	Context   bool     `config:"context" default:"true" doc:"Whether a passage shows its context beside its text."`
	Citations bool     `config:"citations" default:"true" doc:"Whether the answer has to cite passages."`
	None      string   `config:"none" default:"The passages do not answer this." doc:"The answer where the passages do not answer the question; empty: not allowed."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the instructions with, in place of the built-in one; it may use .None, .Context, .Citations and join."`
}

// answerData holds the fields for the template of the instructions. It is the same for all items.
type answerData struct {
	None      string // the answer that says that the passages do not answer the question; empty: not allowed
	Context   bool   // passages show their contexts
	Citations bool   // the answer should cite passages
}

//go:embed answer.tmpl
var answerDefaultTemplate string

// acknowledged is the assistant's message between the passages and the question.
const acknowledged = "I have read the passages. What is the question?"

// Answer describes the prompter.
func Answer() sdk.Stage {
	return sdk.PromptStage("answer", "Writes a chat that has a question answered from numbered passages, which the answer cites.",
		openAnswer, sdk.Revision("1"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts), sdk.Validates(answerConfig.check))
}

func openAnswer(_ context.Context, _ sdk.Setup, c answerConfig) (sdk.Prompter, error) {
	return c.prompter()
}

// prompter loads the template and writes the instructions with it.
func (c answerConfig) prompter() (*answerPrompter, error) {
	data := answerData{None: c.None, Context: c.Context, Citations: c.Citations}
	t, err := fewshot.Load("template", c.Template, answerDefaultTemplate, data, answerData{"none", true, true}, answerData{})
	if err != nil {
		return nil, err
	}
	instructions, err := t.Write(data)
	return &answerPrompter{config: c, Template: t, instructions: instructions}, err
}

func (c answerConfig) check() error {
	_, err := c.prompter()
	return err
}

type answerPrompter struct {
	fewshot.Template
	config       answerConfig
	instructions string
}

// Prompt implements sdk.Prompter.
func (p *answerPrompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) {
		passages, whole := p.shown(item.Candidates)
		if len(passages) == 0 {
			return nil, nil
		}
		prompt, err := p.write(passages, whole, item.Text)
		return []sdk.Prompt{prompt}, err
	})
}

// shown returns the candidates that become passages. whole is true if they are a whole knowledge without a search.
func (p *answerPrompter) shown(candidates []sdk.Candidate) (passages []*sdk.Candidate, whole bool) {
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

// write writes the prompt with as many of the passages as fit.
func (p *answerPrompter) write(passages []*sdk.Candidate, whole bool, question string) (sdk.Prompt, error) {
	texts := make([]string, len(passages))
	for i, c := range passages {
		texts[i] = p.passage(i+1, c)
	}
	least := 0 // tokens of the prompt with one passage
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

// passages delimits passages with marks that no text of a document can contain.
var passages = syntax.NewDelimiters("passage")

// passage writes a candidate as the passage with a number.
func (p *answerPrompter) passage(number int, c *sdk.Candidate) string {
	var out strings.Builder
	fmt.Fprintf(&out, "<passage %d>\nSource: %s\n", number, passages.Escape(source(c)))
	if context, _ := sdk.SplitContext(c.Context); p.config.Context && strings.TrimSpace(context) != "" {
		fmt.Fprintf(&out, "Context: %s\n", passages.Escape(fewshot.OneLine(context)))
	}
	fmt.Fprintf(&out, "Text:\n%s\n</passage %d>", passages.Escape(strings.Trim(c.Text, "\r\n")), number)
	return out.String()
}

// source describes a candidate's origin in one line: a document by its path, title, headings and lines or pages, a
// row by its id.
func source(c *sdk.Candidate) string {
	meta := func(name string) string { s, _ := c.Meta[name].(string); return fewshot.OneLine(s) }
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	path, title := meta("path"), meta("title")
	add(path)
	if title != "" && title != path {
		add(strconv.Quote(title))
	}
	if len(parts) == 0 {
		add(fewshot.OneLine(c.ID))
	}
	add(meta("headings"))
	for _, of := range []string{"line", "page"} {
		first, last := count(c.Meta["first_"+of]), count(c.Meta["last_"+of])
		switch {
		case first == "":
		case last == "" || last == first:
			add(of + " " + first)
		default:
			add(of + "s " + first + " to " + last)
		}
	}
	return strings.Join(parts, ", ")
}

// count formats a number from the metadata; empty: the value is no number.
func count(value any) string {
	n, ok := value.(float64)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
