package openai

import (
	"errors"
	"slices"
	"strconv"

	"github.com/racflow/racflow/plugins/internal/backends"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// question is a prompt with the request for answers to it, but for their number and the
// seed.
type question struct {
	prompt  sdk.Prompt // as its answers are read
	request dialect.Request
	bases   []sdk.Key // of what is asked, and of how it is read: by backend
}

func (v *voter) question(p sdk.Prompt, rejected []sdk.Rejection) (question, error) {
	c, q := v.config, question{prompt: p}
	if err := v.structure(&q); err != nil {
		return q, err
	}
	r := v.Request(c.MaxTokens, usual(q.prompt))
	r.Schema, r.Grammar, r.Choice = q.request.Schema, q.request.Grammar, q.request.Choice
	switch {
	case c.Endpoint == "completions" && len(p.Messages) > 0:
		return q, sdk.Invalid(errors.New(`the prompt is a chat, which the completions endpoint does not take; write endpoint = "chat", or prompt with use = "completion"`))
	case c.Endpoint == "completions":
		r.Prompt = p.Text
	case len(p.Messages) == 0:
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: p.Text}}
	default:
		r.Messages = p.Messages
	}
	if r.Messages != nil {
		r.Messages = append(slices.Clip(r.Messages), again(q.prompt, rejected)...)
	}
	r.Temperature = &c.Temperature
	if c.TopP < 1 {
		r.TopP = &c.TopP
	}
	if q.prompt.Passages == nil {
		r.Logprobs = c.Logprobs
		if q.prompt.Fields == nil {
			r.Stop = c.stop()
		}
	}
	q.request = r
	q.bases = v.bases(&q)
	return q, nil
}

// stop are the texts that end an answer. A chat ends by itself, and may begin with a fence or with
// thoughts; a model that continues a text goes on and on.
func (c config) stop() []string {
	if c.Stop == nil && c.Endpoint == "completions" {
		return []string{"\n"}
	}
	return c.Stop
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

// bases are the keys of a question's answers without their number, by the backend that they are to
// come from: that of the request for
// the first of them, and of how a reply is read before it is cached. What is derived from a
// cached reply, such as the nearest label, is derived again each time. Backends with the same model have the
// same key.
func (v *voter) bases(q *question) (all []sdk.Key) {
	read := "line"
	if q.prompt.Fields != nil {
		read = "object"
	}
	parts := []string{"answer", read}
	if q.request.Logprobs { // the probability of the label is cached, wherever it stands
		parts = append(append(parts, v.config.Read, q.prompt.None), q.prompt.Labels...)
	}
	for _, b := range v.set.All {
		if b.Same < b.Index {
			all = append(all, all[b.Same])
		} else {
			all = append(all, b.Key(v.numbered(b, q, 0, 1), parts...))
		}
	}
	return all
}

// numbered is the request to a backend for n answers from a number on. Each request has
// another seed.
func (v *voter) numbered(b *backends.Backend, q *question, number, n int) dialect.Request {
	r := q.request
	r.Model, r.N = b.Name(), n
	if v.config.Seed >= 0 {
		seed := v.config.Seed + number
		r.Seed = &seed
	}
	return r
}

// key is that of the answer with a number that is to come from a backend.
func (q *question) key(b *backends.Backend, number int) sdk.Key {
	return sdk.KeyOf(string(q.bases[b.Index][:]), strconv.Itoa(number))
}
