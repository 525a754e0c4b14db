package openai

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

// question is a prompt with all that its request carries, but for the number
// of choices and the seed.
type question struct {
	prompt    sdk.Prompt // as its answers are read
	messages  []sdk.Message
	schema    json.RawMessage // nil: none
	grammar   string          // the schema in GBNF
	choice    []string        // nil: any text
	maxTokens int             // 0: no limit
	stop      []string
	base      sdk.Key // of what is sent, and of how it is read
}

func (v *voter) question(p sdk.Prompt) (question, error) {
	q := question{prompt: p, messages: p.Messages}
	switch {
	case v.config.Endpoint == "completions" && len(p.Messages) > 0:
		return q, sdk.Invalid(errors.New(`the prompt is a chat, which the completions endpoint does not take; write endpoint = "chat", or prompt with use = "completion"`))
	case v.config.Endpoint == "chat" && len(p.Messages) == 0:
		q.messages = []sdk.Message{{Role: sdk.MessageUser, Text: p.Text}}
	}
	if err := v.structure(&q); err != nil {
		return q, err
	}
	q.maxTokens = v.Limit(v.config.MaxTokens, usual(q.prompt))
	if q.prompt.Fields == nil && q.prompt.Passages == nil && !v.Thinks() {
		q.stop = v.config.Stop
	}
	q.base = v.base(&q)
	return q, nil
}

// The most tokens of an answer where max_tokens is 0.
const (
	labelTokens = 32
	jsonTokens  = 512
	textTokens  = 1024
)

func usual(p sdk.Prompt) int {
	switch {
	case p.Passages != nil:
		return textTokens
	case p.Fields != nil:
		return jsonTokens
	}
	return labelTokens
}

// base is the key of a question's answers without their number: a digest of the request for
// the first of them, without the fields that do not affect answers, and of how a reply is
// read before it is cached. What is derived from a cached reply, such as the nearest label,
// is derived again each time.
func (v *voter) base(q *question) sdk.Key {
	read := "line"
	if q.prompt.Fields != nil {
		read = "object"
	}
	parts := []string{"answer", read}
	if v.config.Logprobs && q.prompt.Passages == nil { // the probability of the label is cached, wherever it stands
		parts = append(append(parts, v.config.Read, q.prompt.None), q.prompt.Labels...)
	}
	return v.keys.ready(q, 1).Key(v.path(), v.keys.body(q, 0, 1), parts...)
}

// key is that of the answer with a number.
func (q *question) key(number int) sdk.Key {
	return sdk.KeyOf(string(q.base[:]), strconv.Itoa(number))
}
