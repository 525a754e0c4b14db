package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Ask is one request as it came.
type Ask struct {
	Number int // of the request, from 0; probes that are apart have their own
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte
	Batch  string // that it is a line of; empty: it came alone

	Model    string
	Prompt   string    // of /completions
	Messages []Message // of /chat/completions, and of /messages with the system prompt first
	N        int       // 1 where it is not given
	Fields   []string  // of the JSON object that the answer has to be, in order; nil: plain text
	Labels   []string  // that it allows by a schema's enum or structured_outputs.choice
	Inputs   []string  // of /embeddings

	apart       bool // a probe that is not counted
	dimensions  int
	base64      bool
	maxTokens   int
	logprobs    bool
	stop        []string
	effort      string
	thinking    bool // the request wants it, in Anthropic's form
	stream      bool
	streamUsage bool
	format      string // type of response_format
	tool        string // that the model is to call
	schemaText  string // as sent
	sent        map[string]json.RawMessage
	invalid     string
}

// Message is one of a chat.
type Message struct {
	Role    string
	Content string // with all its parts
	Marked  bool   // its last part has cache_control
}

// UnmarshalJSON reads a content that is a text or a list of parts.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var sent struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}
	*m = Message{Role: sent.Role}
	if json.Unmarshal(sent.Content, &m.Content) == nil {
		return nil
	}
	var parts []struct {
		Type         string `json:"type"`
		Text         string `json:"text"`
		CacheControl *struct {
			Type string `json:"type"`
		} `json:"cache_control"`
	}
	if err := json.Unmarshal(sent.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type != "text" || p.Text == "" || p.CacheControl != nil && p.CacheControl.Type != "ephemeral" {
			return fmt.Errorf("a part of a message: %+v", p)
		}
		m.Content += p.Text
		m.Marked = p.CacheControl != nil
	}
	return nil
}

// Text is the prompt, or the chat's last message.
func (a Ask) Text() string {
	if len(a.Messages) > 0 {
		return a.Messages[len(a.Messages)-1].Content
	}
	return a.Prompt
}

// Whole is the prompt, or all messages of the chat in one text. It identifies the
// question, and its tokens are counted.
func (a Ask) Whole() string {
	if len(a.Messages) == 0 {
		return a.Prompt
	}
	var b strings.Builder
	for _, m := range a.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
	}
	return b.String()
}
