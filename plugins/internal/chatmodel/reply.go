package chatmodel

import (
	"errors"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

// Reply is what a model wrote.
type Reply struct {
	Text    string `json:"text"`
	Finish  string `json:"finish,omitempty"` // why it ended, in the server's word
	Refusal string `json:"refusal,omitempty"`
}

// ReadChoice reads a choice of a chat.
func ReadChoice(c openai.ChatCompletionChoice) Reply {
	r := Reply{Text: c.Message.Content, Refusal: c.Message.Refusal, Finish: string(c.FinishReason)}
	for _, part := range c.Message.MultiContent { // some gateways answer in parts
		r.Text += part.Text
	}
	return r
}

// Broken is the error of a reply that the server did not end; nil: it did.
func (r Reply) Broken() error {
	if r.Finish == "error" { // as gateways say it
		return sdk.Transient(errors.New("the server broke off in the middle of an answer"), 0)
	}
	return nil
}

// Unusable is why a reply is no answer, whatever its text; "": it may be one.
func (r Reply) Unusable() string {
	switch {
	case r.Refusal != "":
		return "the model refused: " + shorten(r.Refusal)
	case r.Finish == string(openai.FinishReasonContentFilter):
		return "the server's filter took the answer"
	}
	return ""
}

// TooLong is why an answer counts for nothing that a limit cut.
const TooLong = "the answer was cut off; raise max_tokens"

// Cut reports whether a limit ended the reply.
func (r Reply) Cut() bool { return r.Finish == string(openai.FinishReasonLength) }

// Written returns what a reply says, without what the model thought aloud, and an
// error where it says nothing that can be used.
func (r Reply) Written() (string, error) {
	if reason := r.Unusable(); reason != "" {
		return "", sdk.Invalid(errors.New(reason))
	}
	text := strings.TrimSpace(strings.ToValidUTF8(r.Text[answer.Thoughts(r.Text):], "\uFFFD"))
	switch {
	case text == "" && r.Cut():
		return "", sdk.Invalid(errors.New(TooLong))
	case text == "":
		return "", sdk.Invalid(errors.New("the model wrote nothing"))
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
