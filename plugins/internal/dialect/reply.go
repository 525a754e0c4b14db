package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"
	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Reply is the reply of a server.
type Reply struct {
	Choices       []Choice
	Usage         sdk.Usage // as reported, plausible or not
	ThoughtTokens uint64    // part of Usage.OutputTokens
	Model         string    // the model that answered, as the server names it
	Streamed      bool      // the reply came as events
}

// Read implements Dialect. It ignores the fields in which servers differ.
func (OpenAI) Read(text []byte, r Request) (Reply, error) {
	got, choices, err := parse(text, "choices")
	if err != nil {
		return Reply{}, err
	}
	read := Reply{
		Model: got.Get("model").Str, Usage: api.Usage(text),
		ThoughtTokens: api.Count(got.Get("usage.completion_tokens_details.reasoning_tokens").Num),
	}
	for _, c := range choices {
		m := saidIn(c.Get("message"))
		out := Choice{Text: m.text + c.Get("text").Str, Thoughts: m.thoughts, Refusal: m.refusal, Finish: c.Get("finish_reason").Str, Tokens: tokensIn(c.Get("logprobs"))}
		if out.Finish == string(openai.FinishReasonToolCalls) {
			out.Finish = finishStop
		}
		if m.arguments != "" && (r.Form == FormTool || strings.TrimSpace(out.Text) == "") {
			out.Text, out.Tokens = m.arguments, nil
		}
		read.Choices = append(read.Choices, out)
	}
	return read, nil
}

// parse reads a reply and one of its members. If the member exists, it must be a list.
func parse(text []byte, list string) (reply gjson.Result, elements []gjson.Result, err error) {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	if reply = gjson.ParseBytes(text); !gjson.ValidBytes(text) || !reply.IsObject() {
		return reply, nil, errors.New("it is not a JSON object")
	}
	of := reply.Get(list)
	if of.Type != gjson.Null && !of.IsArray() {
		return reply, nil, fmt.Errorf("%q is not a list", list)
	}
	return reply, of.Array(), nil
}

// tokensIn reads the token probabilities of a chat, or of a continued text.
func tokensIn(logprobs gjson.Result) (tokens []Token) {
	for _, t := range logprobs.Get("content").Array() {
		token := Token{Text: t.Get("token").Str, Log: t.Get("logprob").Num}
		for _, other := range t.Get("top_logprobs").Array() {
			token.Others = append(token.Others, Token{Text: other.Get("token").Str, Log: other.Get("logprob").Num})
		}
		tokens = append(tokens, token)
	}
	others := logprobs.Get("top_logprobs").Array()
	logs := logprobs.Get("token_logprobs").Array()
	for i, t := range logprobs.Get("tokens").Array() {
		if i < len(logs) && logs[i].Type == gjson.Number {
			token := Token{Text: t.Str, Log: logs[i].Num}
			if i < len(others) {
				for text, log := range others[i].Map() {
					token.Others = append(token.Others, Token{Text: text, Log: log.Num})
				}
			}
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// said is the content of a model's message, or what an event adds to it.
type said struct {
	text, thoughts, refusal string
	arguments               string // of the first tool call
}

func saidIn(message gjson.Result) said {
	s := said{thoughts: message.Get("reasoning_content").Str, refusal: message.Get("refusal").Str}
	if s.thoughts == "" {
		s.thoughts = message.Get("reasoning").Str // a text in most gateways
	}
	s.content(message.Get("content"))
	if call := message.Get("tool_calls.0"); call.Get("index").Int() == 0 {
		s.arguments = textOrJSON(call.Get("function.arguments"))
	}
	return s
}

// content adds a text, or a list of parts.
func (s *said) content(value gjson.Result) {
	s.text += value.Str
	if !value.IsArray() {
		return
	}
	for _, part := range value.Array() {
		switch part.Get("type").Str {
		case "thinking", "reasoning":
			thoughts := said{text: part.Get("text").Str}
			thoughts.content(part.Get("thinking")) // a text, or parts again
			s.thoughts += thoughts.text
		default:
			s.text += part.Get("text").Str
			s.refusal += part.Get("refusal").Str
		}
	}
}

// textOrJSON returns a text, or the JSON of another value; null is empty.
func textOrJSON(value gjson.Result) string {
	if value.Type == gjson.String || value.Type == gjson.Null {
		return value.Str
	}
	return value.Raw
}

// Dialect is a provider's form of requests and replies.
type Dialect interface {
	// Path returns the path of a request below the base address, with its query.
	Path(r Request) string
	// Header returns the headers for a key. With an empty key it returns only the headers that need no key.
	Header(key string) http.Header
	// Body returns the request as a value that encodes to a JSON object.
	Body(r Request) (any, error)
	// Read reads the complete reply to r, which is valid JSON.
	Read(reply []byte, r Request) (Reply, error)
}

// Choice is one answer in its cached form.
type Choice struct {
	Text     string  `json:"text"`               // also content in parts, and the arguments of a tool call
	Thoughts string  `json:"thoughts,omitempty"` // thoughts in a field of their own
	Finish   string  `json:"finish,omitempty"`   // why it ended: finishStop, finishLength, ... or a server's own word
	Refusal  string  `json:"refusal,omitempty"`  // the model's refusal
	Tokens   []Token `json:"-"`                  // of Text, if Logprobs was sent
}

// Why an answer ended.
const (
	finishStop   = "stop"
	finishLength = "length"         // at a limit
	finishFilter = "content_filter" // a filter removed it
	finishError  = "error"          // the server broke off
)

// Token is a piece of an answer with the natural logarithm of its probability.
type Token struct {
	Text   string
	Log    float64
	Others []Token // the likeliest tokens at its position, including the token itself
}

// Broken returns an error if the server did not finish the answer.
func (c Choice) Broken() error {
	if c.Finish == finishError { // in the words of gateways
		return sdk.Transient(errors.New("the server broke off in the middle of an answer"), 0)
	}
	return nil
}

// Unusable returns why a reply is no answer, whatever its text; empty: it may be an answer.
func (c Choice) Unusable() string {
	switch {
	case c.Refusal != "":
		return "the model refused: " + shorten(c.Refusal)
	case c.Finish == finishFilter:
		return "the server's filter took the answer"
	}
	return ""
}

// TooLong is the reason to reject an answer that a limit truncated.
const TooLong = support.CutOff

// Cut reports whether a limit ended the answer.
func (c Choice) Cut() bool { return c.Finish == finishLength }

// Starved reports whether a limit ended the answer before any text, for example because the thoughts took all tokens.
func (c Choice) Starved() bool { return c.Cut() && c.Visible() == "" }

// Visible is the text without thoughts.
func (c Choice) Visible() string {
	return strings.TrimSpace(strings.ToValidUTF8(c.Text[support.Thoughts(c.Text):], "\uFFFD"))
}

// Written returns the text of an answer without thoughts, or an error if there is no usable text.
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

// shorten shortens a reason to one line.
func shorten(text string) string {
	const most = 160
	line := fewshot.OneLine(text)
	if short := fewshot.Clip(line, most); short != line {
		return short + "..."
	}
	return line
}

// events yields the data of each event in a stream of server-sent events, after
// https://html.spec.whatwg.org/multipage/server-sent-events.html.
func events(stream []byte) iter.Seq[[]byte] {
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

// errBrokenOff is the error of a stream that ended before the end of its answer.
var errBrokenOff = errors.New("the server's stream broke off before the end of the answer")

// done is the last event of a stream.
const done = "[DONE]"

// joined is a choice that is assembled from events.
type joined struct {
	said
	index  int64
	finish json.RawMessage // nil: not finished yet
	tokens []map[string]any
}

// Join combines a stream of events into a reply for Read. Its error says how the stream broke off.
func (OpenAI) Join(stream []byte) ([]byte, error) {
	reply := map[string]any{}
	var all []*joined
	ended := false
	for data := range events(stream) {
		if ended = string(data) == done; ended {
			break
		}
		event := gjson.ParseBytes(data)
		if !gjson.ValidBytes(data) {
			return nil, errBrokenOff
		}
		if event.Get("error").Type != gjson.Null {
			return data, nil // the reply is an error
		}
		for _, name := range []string{"model", "usage"} {
			if value := event.Get(name); value.Type != gjson.Null {
				reply[name] = json.RawMessage(value.Raw)
			}
		}
		for _, c := range event.Get("choices").Array() {
			index := c.Get("index").Int()
			at := slices.IndexFunc(all, func(known *joined) bool { return known.index == index })
			if at < 0 {
				at, all = len(all), append(all, &joined{index: index})
			}
			all[at].add(c)
		}
	}
	if len(all) == 0 && !ended {
		return nil, errBrokenOff
	}
	choices := []any{}
	for _, c := range all {
		if c.finish == nil && !ended {
			return nil, errBrokenOff
		}
		message := map[string]any{"content": c.text, "reasoning_content": c.thoughts, "refusal": c.refusal}
		if c.arguments != "" {
			message["tool_calls"] = []any{map[string]any{"function": map[string]any{"arguments": c.arguments}}}
		}
		choices = append(choices, map[string]any{"index": c.index, "message": message, "finish_reason": c.finish, "logprobs": map[string]any{"content": c.tokens}})
	}
	reply["choices"] = choices
	return json.Marshal(reply)
}

// add adds an event's part of a choice.
func (j *joined) add(c gjson.Result) {
	for _, s := range []said{saidIn(c.Get("delta")), saidIn(c.Get("message"))} { // some servers send whole messages as events
		j.text += s.text
		j.thoughts += s.thoughts
		j.refusal += s.refusal
		j.arguments += s.arguments
	}
	j.text += c.Get("text").Str
	if finish := c.Get("finish_reason"); finish.Type != gjson.Null {
		j.finish = json.RawMessage(finish.Raw)
	}
	for _, t := range tokensIn(c.Get("logprobs")) {
		others := []any{}
		for _, o := range t.Others {
			others = append(others, map[string]any{"token": o.Text, "logprob": o.Log})
		}
		j.tokens = append(j.tokens, map[string]any{"token": t.Text, "logprob": t.Log, "top_logprobs": others})
	}
}
