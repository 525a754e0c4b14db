package chatmodel

import (
	"context"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Question is a chat that a model is to continue with one text.
type Question struct {
	Messages    []sdk.Message
	Temperature float64
	MaxTokens   int // 0: no limit
}

// ChatPath is where chats are asked, below the base address.
const ChatPath = "/chat/completions"

// Ask asks a question. It calls onReply, which reads the reply and caches it, before the
// call is released, and returns its error.
func (m *Model) Ask(ctx context.Context, q Question, onReply func(Reply) error) error {
	var got Choices[openai.ChatCompletionChoice]
	r, body := m.chat(q)
	r.OnReply = func() error {
		if len(got.Choices) == 0 {
			return NoChoices()
		}
		reply := ReadChoice(got.Choices[0])
		if err := reply.Broken(); err != nil {
			return err
		}
		return onReply(reply)
	}
	return r.Post(ctx, ChatPath, body, &got)
}

// Key is the key of a question's answer in the response cache: a digest of its request
// without the fields that do not affect answers, and of parts, which say what is made of the
// answer before it is cached.
func (m *Model) Key(q Question, parts ...string) sdk.Key {
	r, body := m.Essential().chat(q)
	return r.Key(ChatPath, body, parts...)
}

func (m *Model) chat(q Question) (*api.Request, openai.ChatCompletionRequest) {
	return m.Request(q.Messages, q.Temperature, q.MaxTokens, 1), openai.ChatCompletionRequest{Model: m.config.Model}
}

// Choices is a server's reply as far as stages read it: servers differ in the rest.
type Choices[C any] struct {
	Choices []C `json:"choices"`
}

// NoChoices is the error of a reply without any.
func NoChoices() error {
	return api.NoAnswer("the server's reply holds no choices; check base_url and model")
}
