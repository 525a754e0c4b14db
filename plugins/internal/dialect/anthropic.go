package dialect

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// This file is the dialect of Anthropic's Messages API
// (https://docs.anthropic.com/en/api/messages), version 2023-06-01.
//
// Differences from OpenAI's form: system messages go into a field of their own, wherever they are in the chat.
// Consecutive messages of one role become one message. Empty messages are left out, because the API refuses them. The
// API requires a limit for answers: without one, the dialect sends 4,096 tokens, or 16,384 with thoughts, which every
// model of theirs allows. Stop texts of white space only are left out, because the API refuses them. The API has no n
// choices, seeds or log probabilities: a stage that counts the answers asks n times.
//
// A schema is sent as output_config.format, or as a tool that the model must call. A model that thinks cannot be
// forced to call a tool, so the tool is only offered. The API has no plain JSON mode: the schema is then part of the
// prompt.
//
// An effort in words is sent as output_config.effort, and the model decides how much it thinks (adaptive). A number
// is a budget of thinking tokens; it is added to the limit if the limit leaves no room for it. "none" switches
// thinking off. A model that thinks takes no temperature and no top_p.
//
// The API counts cached tokens apart; sdk.Usage.InputTokens includes them. The API streams no answers unless asked
// to.
//
// The types of this package are the parts of the API that racflow uses. Anthropic's own Go library has all of it, and
// would add a quarter to the program's size. .ci/anthropic compares this package and the tests' scripted server with
// that library.

// AnthropicURL is the address of Anthropic's own service.
const AnthropicURL = "https://api.anthropic.com/v1"

// version is the version of the API.
const version = "2023-06-01"

// Anthropic is the form of Anthropic's Messages API. Its zero value is ready.
type Anthropic struct{}

var _ Dialect = Anthropic{}

// Path implements Dialect.
func (Anthropic) Path(Request) string { return "/messages" }

// Header implements Dialect.
func (Anthropic) Header(key string) http.Header {
	h := http.Header{"Anthropic-Version": {version}}
	if key != "" {
		h.Set("X-Api-Key", key)
	}
	return h
}

// anthropicBody is a request.
type anthropicBody struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	System      []block            `json:"system,omitempty"`
	Messages    []anthropicMessage `json:"messages"`
	Temperature *float64           `json:"temperature,omitempty"`
	TopP        *float64           `json:"top_p,omitempty"`
	Stop        []string           `json:"stop_sequences,omitempty"`
	Thinking    *thinking          `json:"thinking,omitempty"`
	Output      *outputConfig      `json:"output_config,omitempty"`
	Tools       []tool             `json:"tools,omitempty"`
	ToolChoice  *toolChoice        `json:"tool_choice,omitempty"`
}

type thinking struct {
	Type   string `json:"type"` // enabled, adaptive, disabled
	Budget int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string  `json:"effort,omitempty"`
	Format *format `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"`
	Alone bool   `json:"disable_parallel_tool_use"`
}

const (
	// unlimited replaces a missing limit of an answer: every model allows it. unlimitedThoughts is the same for
	// models that think.
	unlimited, unlimitedThoughts = 4096, 16384
	// leastBudget is the smallest budget of thinking tokens that the API accepts.
	leastBudget = 1024
)

// Body implements Dialect.
func (Anthropic) Body(r Request) (any, error) {
	switch {
	case len(r.Messages) == 0:
		return nil, sdk.Invalid(errors.New(`texts are not continued by Anthropic's API; write endpoint = "chat"`))
	case r.Choice != nil:
		return nil, sdk.Invalid(errors.New(`structured = "choice" is vLLM's; write "json_schema" for Anthropic's API`))
	}
	if r.Schema != nil && (r.Form == FormObject || r.Form == FormText) {
		r = Instruct(r)
	}
	b := anthropicBody{Model: r.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP}
	for _, stop := range r.Stop {
		if strings.TrimSpace(stop) != "" {
			b.Stop = append(b.Stop, stop)
		}
	}
	b.System, b.Messages = split(r.Messages, r.CacheMarks)
	b.think(r.Effort)
	b.structure(r)
	return merge(b, r.Extra)
}

// think adds how much the model should think, and a limit if the request has none.
func (b *anthropicBody) think(effort string) {
	if effort == "" || effort == "none" {
		if effort != "" {
			b.Thinking = &thinking{Type: "disabled"}
		}
		b.MaxTokens = cmp.Or(b.MaxTokens, unlimited)
		return
	}
	b.Temperature, b.TopP = nil, nil
	b.MaxTokens = cmp.Or(b.MaxTokens, unlimitedThoughts)
	budget, err := strconv.Atoi(effort)
	if err != nil {
		b.Thinking, b.Output = &thinking{Type: "adaptive"}, &outputConfig{Effort: effort}
		return
	}
	b.Thinking = &thinking{Type: "enabled", Budget: max(budget, leastBudget)}
	if b.MaxTokens <= b.Thinking.Budget { // the limit covers the answer alone
		b.MaxTokens += b.Thinking.Budget
	}
}

// structure adds the fields that restrict the answer to a schema.
func (b *anthropicBody) structure(r Request) {
	switch {
	case r.Schema == nil:
	case r.Form == FormSchema:
		if b.Output == nil {
			b.Output = &outputConfig{}
		}
		b.Output.Format = &format{Type: "json_schema", Schema: r.Schema}
	case r.Form == FormTool:
		b.Tools = []tool{{Name: answerName, Description: "Takes the answer.", InputSchema: r.Schema}}
		b.ToolChoice = &toolChoice{Type: "tool", Name: answerName, Alone: true}
		if b.Thinking != nil && b.Thinking.Type != "disabled" {
			b.ToolChoice.Type, b.ToolChoice.Name = "auto", ""
		}
	}
}

// anthropicMessage is a message of a chat.
type anthropicMessage struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a text.
type block struct {
	Type         string        `json:"type"`
	Text         string        `json:"text"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

// split divides a chat into system messages and the others, whose roles alternate. If marks is set, the last Shared
// messages are marked.
func split(chat []sdk.Message, marks bool) (system []block, turns []anthropicMessage) {
	marked := lastShared(chat, marks)
	for i, m := range chat {
		if m.Text == "" {
			continue
		}
		b := block{Type: "text", Text: m.Text}
		if marked[i] {
			b.CacheControl = &cacheControl{Type: "ephemeral"}
		}
		switch n := len(turns); {
		case m.Role == sdk.MessageSystem:
			system = append(system, b)
		case n > 0 && turns[n-1].Role == m.Role:
			turns[n-1].Content = append(turns[n-1].Content, b)
		default:
			turns = append(turns, anthropicMessage{m.Role, []block{b}})
		}
	}
	if n := len(system); len(turns) == 0 && n > 0 { // a chat needs a user message: the last system message becomes one
		return system[:n-1], []anthropicMessage{{sdk.MessageUser, system[n-1:]}}
	}
	return system, turns
}

// Read implements Dialect.
func (Anthropic) Read(text []byte, r Request) (Reply, error) {
	got, content, err := parse(text, "content")
	if err != nil {
		return Reply{}, err
	}
	u := got.Get("usage")
	input, created, cached := u.Get("input_tokens").Num, u.Get("cache_creation_input_tokens").Num, u.Get("cache_read_input_tokens").Num
	read := Reply{
		Model:         got.Get("model").Str,
		ThoughtTokens: api.Count(u.Get("output_tokens_details.thinking_tokens").Num),
		Usage:         sdk.Usage{InputTokens: api.Count(input + created + cached), CachedTokens: api.Count(cached), OutputTokens: api.Count(u.Get("output_tokens").Num)},
	}
	if got.Get("content").IsArray() || got.Get("stop_reason").Str != "" {
		read.Choices = []Choice{choiceIn(got, content, r)}
	}
	return read, nil
}

// finishes maps reasons to stop to the words of Choice.
var finishes = map[string]string{
	"end_turn": finishStop, "stop_sequence": finishStop, "tool_use": finishStop,
	"max_tokens": finishLength, "model_context_window_exceeded": finishLength,
	"pause_turn": finishLength, // the text so far may be enough
}

// choiceIn builds the answer from the parts of a message: texts, thoughts and tool calls.
func choiceIn(message gjson.Result, content []gjson.Result, asked Request) Choice {
	reason := message.Get("stop_reason").Str
	c := Choice{Finish: cmp.Or(finishes[reason], reason)}
	arguments := ""
	for _, part := range content {
		c.Text += part.Get("text").Str
		c.Thoughts += part.Get("thinking").Str
		if part.Get("type").Str == "tool_use" && arguments == "" {
			arguments = part.Get("input").Raw
		}
	}
	if arguments != "" && (asked.Form == FormTool || strings.TrimSpace(c.Text) == "") {
		c.Text = arguments
	}
	if reason == "refusal" {
		c.Finish = finishStop
		c.Refusal = cmp.Or(message.Get("stop_details.explanation").Str, message.Get("stop_details.category").Str, c.Text, "it gives no reason")
	}
	return c
}
