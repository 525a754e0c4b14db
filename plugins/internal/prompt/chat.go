package prompt

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// This file writes the prompts of retrieval-augmented classification (RAC). A prompt is a chat. Its system message
// lists the allowed labels, the likeliest first; its turns are some neighbours of the item with their labels; and it
// ends with the item. The answer is a JSON object with the label and, optionally before it, the reasoning that leads
// to it: a model takes into account what it has written (Wei et al., "Chain-of-Thought Prompting Elicits Reasoning in
// Large Language Models", NeurIPS 2022).
//
// With labels = "neighbours" only the labels of the item's candidates are allowed, in the order of each label's
// nearest candidate. So a model chooses among few labels even if the knowledge has thousands. With labels = "all" all
// labels of the knowledge are allowed, in sorted order; the candidates' labels are listed after them. An item without
// candidates gets all labels and no turns: zero-shot.
//
// With answer = "list" the answer is a list of labels, the likeliest first. If the accept rules refuse the first
// label, the next one counts. An empty list says that no label fits.
//
// Where labels are sets, the model is asked for all labels that apply, in a list without an order. All labels of the
// neighbours are allowed.
//
// With levels = true, which needs labels with levels, the system message lists only the first level, and the turns
// show the nodes of that level. The voter then asks in the same chat for the nodes below each answer. So with a
// thousand labels the model sees a few dozen. max_tokens does not count these further questions.
//
// The turns are in the order from the farthest neighbour to the nearest. They have the form of the answer, since the
// model would otherwise imitate them rather than follow the system message. Nobody recorded why the neighbours have
// their labels. So the reasoning in their turns says only that they were labelled by hand, and the system message
// asks the model to write more. No reasoning is made up.
//
// Everything that is the same for all items comes first, so that a service with a prompt cache computes it once: the
// instructions, then all labels of the knowledge if all are allowed, and only then the labels of the neighbours,
// their turns and the item.
//
// max_tokens leaves out the farthest turns, as in completion.go.
//
// The template of the system message is a Go text/template with the fields of Data and the function join; a file can
// replace it.
//
// The prompt asks for the form of the answer. The sampler enforces it (JSON schema), and the accept rules refuse
// other labels.

type chatConfig struct {
	Shots     int      `config:"shots" default:"5" min:"0" doc:"How many of the nearest candidates are turns of the chat."`
	Labels    string   `config:"labels" default:"neighbours" one_of:"neighbours,all" doc:"Which labels are allowed: those of the candidates, the nearest first, or all of the knowledge, sorted, behind which those of the candidates are named again."`
	Reasoning bool     `config:"reasoning" default:"true" doc:"Whether the model gives its reasons before the label."`
	Answer    string   `config:"answer" default:"label" one_of:"label,list" doc:"Whether the model answers with one label, or with a list of labels, the likeliest first, that is empty where none fits."`
	Levels    bool     `config:"levels" doc:"Whether the model is asked level by level, where labels have levels: first for one of the top level, then for one below its answer, and so on."`
	None      string   `config:"none" doc:"The answer where none of the labels fits; by default it is not allowed."`
	MaxTokens int      `config:"max_tokens" default:"0" min:"0" doc:"The longest prompt, in tokens of four characters; turns beyond it are left out. 0: no bound."`
	Template  sdk.Path `config:"template" doc:"A Go template to write the system message with, in place of the built-in one; it may use .Labels, .Ranked, .All, .Near, .Meanings, .None, .List, .Many, .Reasoning, .Shots and join."`
}

// reasoningProperty is the property before the label in the answer.
const reasoningProperty = "reasoning"

// Chat describes the prompter.
func Chat() sdk.Stage {
	return sdk.PromptStage("chat", "Writes a chat with the allowed labels, the likeliest first, and neighbours as turns; the answer is a JSON object.",
		openChat, sdk.Revision("2"), sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnLabels), sdk.Validates(chatConfig.check))
}

func openChat(_ context.Context, setup sdk.Setup, c chatConfig) (sdk.Prompter, error) {
	t, err := c.load(setup.Labels)
	if err == nil {
		err = c.fits(setup.Labels)
	}
	if err != nil {
		return nil, err
	}
	p := &chatPrompter{config: c, form: setup.Labels, Template: t, fields: []string{sdk.LabelProperty}}
	if c.list() || p.form.Many {
		p.fields = []string{sdk.LabelsProperty}
	}
	if c.Reasoning {
		p.fields = slices.Insert(p.fields, 0, reasoningProperty)
	}
	return p, nil
}

func (c chatConfig) load(f sdk.LabelForm) (fewshot.Template, error) {
	text := chatDefaultTemplate
	if f.Many {
		text = chatSets.Replace(text)
	}
	return fewshot.Load("template", c.Template, text, chatSamples()...)
}

func (c chatConfig) check() error {
	_, err := c.load(sdk.LabelForm{})
	if c.list() && c.None != "" {
		err = errors.Join(err, &sdk.ArgumentError{Argument: "none", Err: errors.New(`with answer = "list" an empty list says that none of the labels fits; leave none out`)})
	}
	if c.list() && c.Levels {
		err = errors.Join(err, &sdk.ArgumentError{Argument: "levels", Err: errors.New(`each level has one answer; leave out answer = "list"`)})
	}
	return err
}

// fits returns an error if the arguments do not suit the labels of the pipeline.
func (c chatConfig) fits(f sdk.LabelForm) error {
	switch {
	case c.Levels && f.Levels == "":
		return &sdk.ArgumentError{Argument: "levels", Err: errors.New("the labels of the knowledge have no levels; a source says with levels what stands between them")}
	case f.Many && c.None != "":
		return &sdk.ArgumentError{Argument: "none", Err: errors.New("labels are sets, and an empty list says that none of them fits; leave none out")}
	}
	return nil
}

func (c chatConfig) list() bool { return c.Answer == "list" }

type chatPrompter struct {
	fewshot.Template
	config chatConfig
	form   sdk.LabelForm
	fields []string
}

// Prompt implements sdk.Prompter.
func (p *chatPrompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	meanings := fewshot.Meanings(b.Described)
	return fewshot.Each(b.Items, func(item sdk.Item) ([]sdk.Prompt, error) {
		prompt, err := p.write(item, b.Labels, meanings)
		return []sdk.Prompt{prompt}, err
	})
}

func (p *chatPrompter) write(item sdk.Item, all []string, meanings map[string]string) (sdk.Prompt, error) {
	data := p.allowed(item.Candidates, all)
	data.Meanings = meanings
	shots := fewshot.First(item.Candidates, p.config.Shots)
	slices.Reverse(shots)
	prompt := sdk.Prompt{Labels: data.Labels, None: p.config.None, Fields: p.fields}
	if p.config.Levels {
		prompt.Levels = p.form.Levels
		data.Labels, data.All, data.Near = p.tops(data.Labels), p.tops(data.All), p.tops(data.Near)
	} else if data.All != nil { // in the same order for all items: services put a schema with the labels before the prompt
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

// allowed returns the allowed labels, for the template.
func (p *chatPrompter) allowed(candidates []sdk.Candidate, all []string) chatData {
	data := chatData{None: p.config.None, List: p.config.list() || p.form.Many, Many: p.form.Many, Reasoning: p.config.Reasoning}
	var labels []string
	seen := map[string]bool{"": true}
	add := func(label string) {
		if !seen[label] {
			seen[label] = true
			labels = append(labels, label)
		}
	}
	for i := range candidates {
		for _, label := range p.form.Split(candidates[i].Label) {
			add(label)
		}
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

// tops returns the different first-level nodes of labels.
func (p *chatPrompter) tops(labels []string) (nodes []string) {
	for _, label := range labels {
		if top := p.form.Path(label)[0]; !slices.Contains(nodes, top) {
			nodes = append(nodes, top)
		}
	}
	return nodes
}

//go:embed chat.tmpl
var chatDefaultTemplate string

// chatSets adapts the built-in template to label sets.
var chatSets = strings.NewReplacer(
	"The user writes a text. Find the label that fits it best.", "A text has one label or several. The user writes a text. Find all labels that apply to it.",
	"which label that speaks for", "which labels that speaks for",
	"a list of the labels that may fit, the likeliest first, each written exactly as below; an empty list if none of them fits",
	"a list of all labels that apply, each written exactly as below; an empty list if none of them applies",
)

// chatData holds the fields for a template of the system message.
type chatData struct {
	Labels    []string          // the allowed labels, best first; empty if the knowledge has none
	Ranked    bool              // the first labels are those of the item's neighbours
	All       []string          // all labels of the knowledge, sorted, if all are allowed; else empty
	Near      []string          // labels of the item's neighbours, nearest first
	Meanings  map[string]string // descriptions by label; empty if there are none
	None      string            // the answer that no label fits; empty: not allowed
	List      bool              // the answer is a list of labels, empty if none fits
	Many      bool              // labels are sets: the list should have all that apply
	Reasoning bool              // the answer should give reasons
	Shots     int               // number of turns between the system message and the item
}

// chatSamples are the data for testing templates.
func chatSamples() []any {
	return []any{chatData{Labels: []string{"label"}, Ranked: true, All: []string{"label"}, Near: []string{"label"}, Meanings: map[string]string{"label": "meaning"}, None: "none", List: true, Many: true, Reasoning: true, Shots: 1}, chatData{}}
}

// byHand is the reasoning in the turn of a labelled neighbour.
const byHand = "labelled by hand"

func (p *chatPrompter) messages(system string, shots []fewshot.Example, text string) []sdk.Message {
	messages := make([]sdk.Message, 0, 2*len(shots)+2)
	messages = append(messages, sdk.Message{Role: sdk.MessageSystem, Text: system})
	for _, s := range shots {
		messages = append(messages,
			sdk.Message{Role: sdk.MessageUser, Text: s.Text},
			sdk.Message{Role: sdk.MessageAssistant, Text: p.object(s.Label)})
	}
	return append(messages, sdk.Message{Role: sdk.MessageUser, Text: strings.TrimSpace(text)})
}

// object returns the answer with a label or a set. Its properties have the order of the fields.
func (p *chatPrompter) object(label string) string {
	if p.config.Levels {
		label = p.form.Path(label)[0]
	}
	var out strings.Builder
	for i, field := range p.fields {
		value := fewshot.JSON(label)
		switch field {
		case reasoningProperty:
			value = fewshot.JSON(byHand)
		case sdk.LabelsProperty:
			value = fewshot.JSON(p.form.Split(label))
		}
		out.WriteString([]string{"{", ", "}[min(i, 1)] + fewshot.JSON(field) + ": " + value)
	}
	return out.String() + "}"
}
