package chatmodel

import (
	"context"
	"strconv"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Question is a chat that a model is to end with one text.
type Question struct {
	Messages    []sdk.Message
	Temperature float64
	MaxTokens   int // 0: no limit
}

// Unlimited is how many tokens an answer counts for with the limits of services
// where it has no limit of its own.
const Unlimited = 512

// Ask asks a question. Took is called with the reply before the Host hears that
// the call has ended, to read it and to keep what came of it; its error is Ask's.
func (m *Model) Ask(ctx context.Context, q Question, took func(Reply) error) error {
	var got Choices[openai.ChatCompletionChoice]
	r := api.Request{Client: m.Client, Tokens: q.MaxTokens, Bounded: q.MaxTokens > 0, Fields: m.Fields(q.Messages, q.Temperature, q.MaxTokens)}
	if q.MaxTokens == 0 {
		r.Tokens = Unlimited
	}
	r.Took = func() error {
		if len(got.Choices) == 0 {
			return NoChoices()
		}
		reply := ReadChoice(got.Choices[0])
		if err := reply.Broken(); err != nil {
			return err
		}
		return took(reply)
	}
	return r.Post(ctx, "/chat/completions", openai.ChatCompletionRequest{Model: m.config.Model}, &got)
}

// Choices is a server's reply as far as stages read it: servers differ in the rest.
type Choices[C any] struct {
	Choices []C `json:"choices"`
}

// NoChoices is the error of a reply without any.
func NoChoices() error {
	return api.NoAnswer("the server's reply holds no choices; check base_url and model")
}

// Key is that of what a question's answer is kept under, with further parts that
// say what is kept of it. It changes with everything that changes the answer.
func (m *Model) Key(q Question, more ...string) sdk.Key {
	parts := []string{
		"reply 1", m.Address(), m.config.Model, strconv.FormatFloat(q.Temperature, 'g', -1, 64), strconv.Itoa(q.MaxTokens), m.Body(), strconv.Itoa(len(more)),
	}
	parts = append(parts, more...)
	for _, message := range q.Messages {
		parts = append(parts, message.Role, message.Text)
	}
	return sdk.KeyOf(parts...)
}
