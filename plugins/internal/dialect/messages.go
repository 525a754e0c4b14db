package dialect

import (
	"encoding/json"

	"github.com/racflow/racflow/sdk"
)

// message is one as OpenAI's endpoint takes it: its content is a text, or parts of it.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type part struct {
	Type         string            `json:"type"`
	Text         string            `json:"text"`
	CacheControl map[string]string `json:"cache_control"`
}

// maxMarks is how many parts of a request Anthropic allows to be marked.
const maxMarks = 4

// messages writes those of a chat; nil for a text to continue.
func messages(r Request) []message {
	sent, left := make([]message, len(r.Messages)), maxMarks
	if !r.CacheMarks {
		left = 0
	}
	for i := len(r.Messages) - 1; i >= 0; i-- { // the last mark covers most
		it := r.Messages[i]
		sent[i] = message{it.Role, it.Text}
		if it.Shared && it.Text != "" && left > 0 {
			sent[i].Content = []part{{"text", it.Text, map[string]string{"type": "ephemeral"}}}
			left--
		}
	}
	return sent
}

// Instruct is a request whose prompt asks for an answer that fits its schema, in words: at
// the end of a chat, so that its beginning stays in the service's cache, and at the
// beginning of a text, which has to end as it does.
func Instruct(r Request) Request {
	instruction := "Answer with a JSON object that fits this JSON schema, and with nothing else:\n" + string(r.Schema)
	n := len(r.Messages)
	switch {
	case n == 0:
		r.Prompt = instruction + "\n\n" + r.Prompt
	case r.Messages[n-1].Role == sdk.MessageUser:
		last := r.Messages[n-1]
		last.Text, last.Shared = last.Text+"\n\n"+instruction, false
		r.Messages = append(r.Messages[:n-1:n-1], last)
	default:
		r.Messages = append(r.Messages[:n:n], sdk.Message{Role: sdk.MessageUser, Text: instruction})
	}
	return r
}

// Merge is a body with further fields, which replace others of their name. Values stay as
// they are: the order of a schema's properties matters.
func Merge(body any, extra map[string]any) (any, error) {
	if len(extra) == 0 {
		return body, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range extra {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}
