package chatmodel

import (
	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// unlimited is how many tokens an answer without a limit counts with the limits of
// services.
const unlimited = 512

// Request is one for n answers of at most maxTokens tokens each, 0 for no limit, but for
// the fields that go-openai has. Without messages it is for the completions endpoint.
func (m *Model) Request(messages []sdk.Message, temperature float64, maxTokens, n int) *api.Request {
	r := &api.Request{Client: m.Client, Tokens: n * maxTokens, Bounded: maxTokens > 0, Fields: m.fields(messages, temperature, maxTokens)}
	if maxTokens == 0 {
		r.Tokens = n * unlimited
	}
	return r
}

// fields are those of a request that depend on the model, or that go-openai lacks or
// leaves out where they are 0 or empty.
func (m *Model) fields(messages []sdk.Message, temperature float64, maxTokens int) map[string]any {
	c, fields := m.config, map[string]any{}
	if !m.Thinks() {
		fields["temperature"] = temperature
	}
	if maxTokens > 0 {
		name := c.MaxTokensField
		if name == "auto" {
			if name = "max_tokens"; m.Thinks() && messages != nil {
				name = "max_completion_tokens"
			}
		}
		fields[name] = maxTokens
	}
	if c.PromptCacheKey != "" {
		fields["prompt_cache_key"] = c.PromptCacheKey
	}
	if messages != nil {
		fields["messages"] = m.messages(messages)
	}
	return fields
}

// message is one as it is sent: its content is a text, or parts of it.
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

func (m *Model) messages(messages []sdk.Message) []message {
	sent, left := make([]message, len(messages)), maxMarks
	if !m.config.CacheControl {
		left = 0
	}
	for i := len(messages) - 1; i >= 0; i-- { // the last mark covers most
		it := messages[i]
		sent[i] = message{it.Role, it.Text}
		if it.Shared && it.Text != "" && left > 0 {
			sent[i].Content = []part{{"text", it.Text, map[string]string{"type": "ephemeral"}}}
			left--
		}
	}
	return sent
}
