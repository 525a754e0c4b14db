package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"
)

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

// joined is a reply of which the events are told one after the other.
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

// Join implements Dialect.
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
