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
	base      sdk.Key // of everything above and the parameters
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
	q.maxTokens = v.model.Limit(v.config.MaxTokens, usual(q.prompt))
	if q.prompt.Fields == nil && q.prompt.Passages == nil && !v.model.Thinks() {
		q.stop = v.config.Stop
	}
	q.base = v.base(&q)
	return q, nil
}

// The most tokens of an answer where the file does not say.
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

// base is the key of a question's answers but for their number. It changes with
// everything that changes an answer: not with the key, the headers, the way a
// label is read, or how many are asked for.
func (v *voter) base(q *question) sdk.Key {
	c := v.config
	parameters, err := json.Marshal(struct {
		Temperature, TopP float64
		Seed, MaxTokens   int
		Stop              []string
		Logprobs          bool
		Choice            []string
		Schema            json.RawMessage
	}{c.Temperature, c.TopP, c.Seed, q.maxTokens, q.stop, c.Logprobs, q.choice, q.schema})
	if err != nil { // numbers that JSON lacks: check refuses them
		panic(err)
	}
	parts := []string{"answer 1", v.model.Address(), c.Endpoint, c.Model, string(parameters), v.model.Body()}
	if c.Endpoint == "completions" {
		parts = append(parts, q.prompt.Text)
	}
	for _, m := range q.messages {
		parts = append(parts, m.Role, m.Text)
	}
	return sdk.KeyOf(parts...)
}

// key is that of the answer with a number.
func (q *question) key(number int) sdk.Key {
	return sdk.KeyOf(string(q.base[:]), strconv.Itoa(number))
}
