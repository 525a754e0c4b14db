package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
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
	if finish == string(openai.FinishReasonToolCalls) {
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

// Dialect is a provider's form of requests and replies.
type Dialect interface {
	// Path is where a request goes, below the base address, with its query.
	Path(r Request) string
	// Header is how a key is shown; an empty key gives what goes along without one.
	Header(key string) http.Header
	// Body encodes to the JSON object that is sent.
	Body(r Request) (any, error)
	// Read reads the whole reply to r, which is valid JSON.
	Read(reply []byte, r Request) (Reply, error)
}

// Reply is what a server replied.
type Reply struct {
	Choices       []Choice
	Usage         sdk.Usage // as it is reported, plausible or not
	ThoughtTokens uint64    // of Usage.OutputTokens
	Model         string    // that answered, by the server
	Streamed      bool      // it came as events
}

// Choice is one answer, as it is cached.
type Choice struct {
	Text     string  `json:"text"`               // also of content in parts, and the arguments of a tool call
	Thoughts string  `json:"thoughts,omitempty"` // that came in a field of their own
	Finish   string  `json:"finish,omitempty"`   // why it ended: FinishStop, FinishLength, ... or a server's own word
	Refusal  string  `json:"refusal,omitempty"`  // of the model
	Tokens   []Token `json:"-"`                  // of Text, where Logprobs was sent
}

// Why an answer ended.
const (
	FinishStop   = "stop"
	FinishLength = "length"         // a limit cut it
	FinishFilter = "content_filter" // a filter took it
	FinishError  = "error"          // the server broke off
)

// Token is a piece of an answer with the natural logarithm of its probability.
type Token struct {
	Text string
	Log  float64
}

// Broken is the error of an answer that the server did not end; nil: it did.
func (c Choice) Broken() error {
	if c.Finish == FinishError { // as gateways say it
		return sdk.Transient(errors.New("the server broke off in the middle of an answer"), 0)
	}
	return nil
}

// Unusable is why a reply is no answer, whatever its text; "": it may be one.
func (c Choice) Unusable() string {
	switch {
	case c.Refusal != "":
		return "the model refused: " + shorten(c.Refusal)
	case c.Finish == FinishFilter:
		return "the server's filter took the answer"
	}
	return ""
}

// TooLong is why an answer counts for nothing that a limit cut.
const TooLong = support.CutOff

// Cut reports whether a limit ended the answer.
func (c Choice) Cut() bool { return c.Finish == FinishLength }

// Starved reports whether a limit ended the answer before anything of it was written, as
// when a model needs all tokens for its thoughts.
func (c Choice) Starved() bool { return c.Cut() && c.Visible() == "" }

// Visible is the text without what the model thought aloud.
func (c Choice) Visible() string {
	return strings.TrimSpace(strings.ToValidUTF8(c.Text[support.Thoughts(c.Text):], "\uFFFD"))
}

// Written returns what an answer says, without what the model thought aloud, and an
// error where it says nothing that can be used.
func (c Choice) Written() (string, error) {
	if reason := c.Unusable(); reason != "" {
		return "", sdk.Invalid(errors.New(reason))
	}
	text := c.Visible()
	switch {
	case text == "" && c.Cut():
		return "", sdk.Invalid(errors.New(TooLong))
	case text == "":
		return "", sdk.Invalid(errors.New(support.NoAnswer))
	}
	return text, nil
}

// shorten keeps a reason to a line.
func shorten(text string) string {
	const most = 160
	line := fewshot.OneLine(text)
	if short := fewshot.Clip(line, most); short != line {
		return short + "..."
	}
	return line
}

// Events yields the data of each event in a stream of server-sent events, after
// https://html.spec.whatwg.org/multipage/server-sent-events.html.
func Events(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var data [][]byte
		for line := range bytes.Lines(append(bytes.TrimRight(stream, "\r\n"), "\n\n"...)) {
			line = bytes.TrimRight(line, "\r\n")
			value, isData := bytes.CutPrefix(line, []byte("data:"))
			switch {
			case isData:
				data = append(data, bytes.TrimPrefix(value, []byte(" ")))
			case len(line) == 0 && data != nil:
				if !yield(bytes.Join(data, []byte("\n"))) {
					return
				}
				data = nil
			}
		}
	}
}

// ErrBrokenOff is the error of a stream that ended before its answer did.
var ErrBrokenOff = errors.New("the server's stream broke off before the end of the answer")

// done is the last event of a stream.
const done = "[DONE]"

// joined is a reply of which the events come one after the other.
type joined struct {
	Model   any             `json:"model,omitempty"`
	Choices []*joinedChoice `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
}

type joinedChoice struct {
	Index   int `json:"index"`
	Message struct {
		Content   string           `json:"content"`
		Thoughts  string           `json:"reasoning_content,omitempty"`
		Refusal   string           `json:"refusal,omitempty"`
		ToolCalls []joinedToolCall `json:"tool_calls,omitempty"`
	} `json:"message"`
	FinishReason any       `json:"finish_reason"`
	Logprobs     *logprobs `json:"logprobs,omitempty"`
}

type joinedToolCall struct {
	Function struct {
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Join makes a reply for Read of a stream of events. Its error says how the stream broke off.
func (OpenAI) Join(stream []byte) ([]byte, error) {
	var all joined
	ended := false
	for data := range Events(stream) {
		if ended = string(data) == done; ended {
			break
		}
		var event struct {
			Model   any             `json:"model"`
			Choices []choice        `json:"choices"`
			Usage   json.RawMessage `json:"usage"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, ErrBrokenOff
		}
		if given(event.Error) {
			return data, nil // a reply that is an error
		}
		if event.Model != nil {
			all.Model = event.Model
		}
		if given(event.Usage) {
			all.Usage = event.Usage
		}
		for _, c := range event.Choices {
			all.add(c)
		}
	}
	for _, c := range all.Choices {
		if c.FinishReason == nil && !ended {
			return nil, ErrBrokenOff
		}
	}
	if len(all.Choices) == 0 && !ended {
		return nil, ErrBrokenOff
	}
	return json.Marshal(all)
}

func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// add adds what an event says of a choice.
func (j *joined) add(c choice) {
	at := slices.IndexFunc(j.Choices, func(known *joinedChoice) bool { return known.Index == c.Index })
	if at < 0 {
		at = len(j.Choices)
		j.Choices = append(j.Choices, &joinedChoice{Index: c.Index})
	}
	to := j.Choices[at]
	for _, s := range []said{c.Delta, c.Message} { // some servers send messages as events
		p := s.read()
		to.Message.Content += p.text
		to.Message.Thoughts += p.thoughts
		to.Message.Refusal += p.refusal
		if p.arguments != "" {
			if to.Message.ToolCalls == nil {
				to.Message.ToolCalls = make([]joinedToolCall, 1)
			}
			to.Message.ToolCalls[0].Function.Arguments += p.arguments
		}
	}
	to.Message.Content += c.Text
	if c.FinishReason != nil {
		to.FinishReason = c.FinishReason
	}
	if c.Logprobs != nil {
		if to.Logprobs == nil {
			to.Logprobs = &logprobs{}
		}
		to.Logprobs.Content = append(to.Logprobs.Content, c.Logprobs.Content...)
		to.Logprobs.Tokens = append(to.Logprobs.Tokens, c.Logprobs.Tokens...)
		to.Logprobs.TokenLogprobs = append(to.Logprobs.TokenLogprobs, c.Logprobs.TokenLogprobs...)
	}
}
