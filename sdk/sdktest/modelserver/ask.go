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

	Model    string
	Prompt   string    // of /completions
	Messages []Message // of /chat/completions
	N        int       // 1 where it is not given
	Fields   []string  // of the JSON object that the answer has to be, in order; nil: plain text
	Labels   []string  // that it allows by a schema's enum or structured_outputs.choice
	Inputs   []string  // of /embeddings

	apart      bool // a probe that is not counted
	dimensions int
	base64     bool
	maxTokens  int
	logprobs   bool
	schemaText string // as sent
	invalid    string
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

// request is the body of all three endpoints.
type request struct {
	Model               string          `json:"model"`
	Prompt              string          `json:"prompt"`
	Messages            []Message       `json:"messages"`
	N                   *int            `json:"n"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	Stop                []string        `json:"stop"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Logprobs            json.RawMessage `json:"logprobs"`
	ResponseFormat      struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	StructuredOutputs struct {
		Choice []string `json:"choice"`
	} `json:"structured_outputs"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions"`
	EncodingFormat string   `json:"encoding_format"`
}

// read reads the body; an error of it goes into a.invalid.
func (a *Ask) read() {
	var r request
	if err := json.Unmarshal(a.Body, &r); err != nil {
		a.invalid = "the body: " + err.Error()
		return
	}
	a.Model, a.Prompt, a.Messages, a.N = r.Model, r.Prompt, r.Messages, 1
	if r.N != nil {
		a.N = *r.N
	}
	for _, limit := range []*int{r.MaxTokens, r.MaxCompletionTokens} {
		if limit != nil {
			a.maxTokens = *limit
		}
	}
	a.logprobs = len(r.Logprobs) > 0 && string(r.Logprobs) != "null" && string(r.Logprobs) != "false" && string(r.Logprobs) != "0"
	marked := 0
	for _, m := range a.Messages {
		if m.Marked {
			marked++
		}
	}
	if marked > 4 { // as Anthropic's endpoint has it
		a.invalid = "cache_control: at most 4 parts may be marked"
	}
	a.Inputs, a.dimensions, a.base64 = r.Input, r.Dimensions, r.EncodingFormat == "base64"
	a.Labels = r.StructuredOutputs.Choice
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5"} {
		if strings.HasPrefix(a.Model, prefix) && (r.Temperature != nil || r.TopP != nil || r.MaxTokens != nil || r.Stop != nil || a.N != 1 || a.logprobs) {
			a.invalid = "unsupported parameter: this model takes no temperature, top_p, max_tokens, stop, logprobs and n"
		}
	}
	switch r.ResponseFormat.Type {
	case "json_schema":
		if !r.ResponseFormat.JSONSchema.Strict || r.ResponseFormat.JSONSchema.Name == "" {
			a.invalid = "json_schema: it must have a name and be strict"
			return
		}
		a.schemaText = string(r.ResponseFormat.JSONSchema.Schema)
		a.schema(r.ResponseFormat.JSONSchema.Schema)
	case "", "text":
	default:
		a.invalid = "response_format: unknown type " + r.ResponseFormat.Type
	}
}

// schema reads a JSON schema and checks it by the rules of strict ones.
func (a *Ask) schema(raw json.RawMessage) {
	var s struct {
		Type       string   `json:"type"`
		Required   []string `json:"required"`
		Additional *bool    `json:"additionalProperties"`
		Properties map[string]struct {
			Type  string   `json:"type"`
			Enum  []string `json:"enum"`
			Items struct { // of a list
				Enum []string `json:"enum"`
			} `json:"items"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &s); err != nil || s.Type != "object" || s.Additional == nil || *s.Additional || len(s.Required) != len(s.Properties) {
		a.invalid = "json_schema: the root must be an object with all properties required and no additional ones"
		return
	}
	a.Fields = s.Required
	for name, p := range s.Properties {
		if p.Type == "array" {
			p.Enum = p.Items.Enum
		}
		size := 0
		for _, value := range p.Enum {
			size += len([]rune(value))
		}
		if len(p.Enum) > 1000 || len(p.Enum) > 250 && size > 15000 {
			a.invalid = fmt.Sprintf("json_schema: the enum of %q is too large", name)
		}
		if name == "label" || name == "labels" {
			a.Labels = p.Enum
		}
	}
}
