package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/serve/guard"
)

// request is what counts of a request.
type request struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	N        *int      `json:"n"`
	Format   *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// message is one of a conversation.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a text, or parts of which each is one.
type content struct {
	text  string
	other string // the type of the first part that is no text; empty: all are
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("content is a text or a list of parts: %w", err)
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case c.other == "":
			c.other = p.Type
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// read reads a request, and the question in it.
func read(r *http.Request) (in request, question string, refused *refusal) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return in, "", refusalOf(guard.Unreadable(err))
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return in, "", wrong("", "the body is no chat completion request: %v", err)
	}
	if in.N != nil && *in.N != 1 {
		return in, "", wrong("n", "a pipeline elects one answer: n is 1")
	}
	if in.Format != nil && in.Format.Type != "" && in.Format.Type != "text" {
		return in, "", wrong("response_format", "the answer is the pipeline's, as it stands: response_format is text; the field racflow of the answer has the whole result as JSON")
	}
	messages := slices.Clone(in.Messages)
	slices.Reverse(messages)
	i := slices.IndexFunc(messages, func(m message) bool { return m.Role == "user" })
	if i < 0 {
		return in, "", wrong("messages", "there is no message of the role user, which would be the question")
	}
	asked := messages[i].Content
	if asked.other != "" {
		return in, "", wrong("messages", "a part of the question is of the type %q, and pipelines take text", asked.other)
	}
	return in, asked.text, nil
}
