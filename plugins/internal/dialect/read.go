package dialect

import (
	"encoding/json"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/plugins/internal/api"
)

// reply is a server's as far as it is read: servers differ in the rest.
type reply struct {
	Model   any      `json:"model"`
	Choices []choice `json:"choices"`
	Usage   struct {
		Details struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      said      `json:"message"`
	Delta        said      `json:"delta"` // of an event
	Text         string    `json:"text"`  // of a text that was continued
	FinishReason any       `json:"finish_reason"`
	Logprobs     *logprobs `json:"logprobs"`
}

// logprobs are those of a chat, or of a text.
type logprobs struct {
	openai.LogProbs
	Tokens        []string   `json:"tokens,omitempty"`
	TokenLogprobs []*float64 `json:"token_logprobs,omitempty"`
}

// said is a message of a model, or what an event adds to it.
type said struct {
	Content          json.RawMessage `json:"content,omitempty"` // a text, or parts
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        json.RawMessage `json:"reasoning,omitempty"` // a text, in most gateways
	Refusal          string          `json:"refusal,omitempty"`
	ToolCalls        []toolCall      `json:"tool_calls,omitempty"`
	FunctionCall     *function       `json:"function_call,omitempty"` // what tool calls were once
}

type toolCall struct {
	Index    int      `json:"index"`
	Function function `json:"function"`
}

type function struct {
	Arguments json.RawMessage `json:"arguments"` // JSON in a text, or JSON
}

// Read implements Dialect.
func (OpenAI) Read(text []byte, r Request) (Reply, error) {
	var got reply
	if err := json.Unmarshal(text, &got); err != nil {
		return Reply{}, err
	}
	model, _ := got.Model.(string)
	read := Reply{Model: model, Usage: api.Usage(text), ThoughtTokens: api.Count(got.Usage.Details.Reasoning)}
	for _, c := range got.Choices {
		read.Choices = append(read.Choices, c.read(r))
	}
	return read, nil
}

func (c choice) read(r Request) Choice {
	m := c.Message.read()
	finish, _ := c.FinishReason.(string)
	if finish == string(openai.FinishReasonToolCalls) || finish == string(openai.FinishReasonFunctionCall) {
		finish = FinishStop
	}
	out := Choice{Text: m.text + c.Text, Thoughts: m.thoughts, Refusal: m.refusal, Finish: finish, Tokens: c.Logprobs.read()}
	if m.arguments != "" && (r.Form == FormTool || strings.TrimSpace(out.Text) == "") {
		out.Text, out.Tokens = m.arguments, nil
	}
	return out
}

func (l *logprobs) read() (tokens []Token) {
	if l == nil {
		return nil
	}
	for _, t := range l.Content {
		tokens = append(tokens, Token{t.Token, t.LogProb})
	}
	for i, t := range l.Tokens {
		if i < len(l.TokenLogprobs) && l.TokenLogprobs[i] != nil {
			tokens = append(tokens, Token{t, *l.TokenLogprobs[i]})
		}
	}
	return tokens
}

// pieces are what a message consists of.
type pieces struct {
	text, thoughts, refusal string
	arguments               string // of the first call of a tool
}

func (s said) read() pieces {
	p := pieces{thoughts: s.ReasoningContent, refusal: s.Refusal}
	if p.thoughts == "" {
		p.thoughts, _ = text(s.Reasoning)
	}
	p.content(s.Content)
	if s.FunctionCall != nil {
		p.arguments = s.FunctionCall.arguments()
	}
	if len(s.ToolCalls) > 0 && s.ToolCalls[0].Index == 0 {
		p.arguments = s.ToolCalls[0].Function.arguments()
	}
	return p
}

// content adds a text, or the parts of one.
func (p *pieces) content(value json.RawMessage) {
	if whole, ok := text(value); ok {
		p.text += whole
		return
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Refusal  string          `json:"refusal"`
		Thinking json.RawMessage `json:"thinking"` // a text, or parts again
	}
	_ = json.Unmarshal(value, &parts) // another form: nothing
	for _, part := range parts {
		switch part.Type {
		case "thinking", "reasoning":
			thoughts := pieces{text: part.Text}
			thoughts.content(part.Thinking)
			p.thoughts += thoughts.text
		default:
			p.text += part.Text
			p.refusal += part.Refusal
		}
	}
}

func (f function) arguments() string {
	if whole, ok := text(f.Arguments); ok {
		return whole
	}
	return string(f.Arguments)
}

// text is a JSON value that is one; null is empty.
func text(value json.RawMessage) (whole string, ok bool) {
	ok = len(value) == 0 || json.Unmarshal(value, &whole) == nil
	return whole, ok
}
