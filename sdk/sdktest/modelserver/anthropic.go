package modelserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Anthropic's Messages API is served below the same address, at /messages, with the same
// options and faults: one choice, system prompts and errors in a form of their own.

// messagesRequest is a request for a message, as far as it is read.
type messagesRequest struct {
	Model       string          `json:"model"`
	MaxTokens   int             `json:"max_tokens"`
	System      json.RawMessage `json:"system"` // a text, or parts of one
	Messages    []Message       `json:"messages"`
	Temperature *float64        `json:"temperature"`
	Stop        []string        `json:"stop_sequences"`
	Stream      bool            `json:"stream"`
	Thinking    struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Output struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
}

// messagesFields are the fields of a request that the API knows; it refuses others.
var messagesFields = []string{
	"model", "max_tokens", "system", "messages", "temperature", "top_p", "top_k", "stop_sequences", "stream", "thinking", "output_config",
	"tools", "tool_choice", "metadata", "service_tier", "cache_control", "container", "inference_geo",
}

// messages reports whether a path is that of Anthropic's API.
func messages(path string) bool { return strings.HasSuffix(path, "/messages") }

// readMessages reads the body of a request for a message; an error of it goes into a.invalid.
func (a *Ask) readMessages() {
	var r messagesRequest
	if err := json.Unmarshal(a.Body, &r); err != nil {
		a.invalid = "the body: " + err.Error()
		return
	}
	_ = json.Unmarshal(a.Body, &a.sent) // it is an object
	a.Model, a.Messages, a.N, a.maxTokens, a.stop, a.stream = r.Model, r.Messages, 1, r.MaxTokens, r.Stop, r.Stream
	a.effort, a.thinking = r.Output.Effort, r.Thinking.Type == "enabled" || r.Thinking.Type == "adaptive"
	forced := r.ToolChoice.Type == "tool" || r.ToolChoice.Type == "any"
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{a.Header.Get("anthropic-version") == "", "anthropic-version: header is required"},
		{r.MaxTokens < 1, "max_tokens: Field required"},
		{len(r.Messages) == 0 || r.Messages[0].Role != "user", "messages: first message must use the \"user\" role"},
		{r.Temperature != nil && (*r.Temperature > 1 || *r.Temperature < 0), "temperature: range: 0..1"},
		{a.thinking && r.Temperature != nil && *r.Temperature != 1, "`temperature` may only be set to 1 when thinking is enabled"},
		{a.thinking && forced, "Thinking may not be enabled when tool_choice forces tool use."},
		{r.Thinking.Type == "enabled" && r.Thinking.Budget < 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		{r.Thinking.Type == "enabled" && r.Thinking.Budget >= r.MaxTokens, "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{slices.ContainsFunc(r.Stop, blank), "stop_sequences: each stop sequence must contain non-whitespace"},
		{slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Content == "" }), "messages: text content blocks must be non-empty"},
		{slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role != "user" && m.Role != "assistant" }), "messages: Unexpected role; use the top-level `system` parameter"},
	} {
		if rule.broken && a.invalid == "" {
			a.invalid = rule.message
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.sent)) {
		if !slices.Contains(messagesFields, name) && a.invalid == "" {
			a.invalid = name + ": Extra inputs are not permitted"
		}
	}
	if len(r.System) > 0 {
		system, _ := json.Marshal(object{"role": "system", "content": r.System}) // it was JSON
		var m Message
		if err := json.Unmarshal(system, &m); err != nil || m.Content == "" {
			a.invalid = "system: text content blocks must be non-empty"
		}
		a.Messages = append([]Message{m}, a.Messages...)
	}
	if strings.Count(string(a.Body), `"cache_control"`) > 4 {
		a.invalid = "A maximum of 4 blocks with cache_control may be provided."
	}
	switch {
	case r.Output.Format != nil:
		a.format = r.Output.Format.Type
		a.readSchema(r.Output.Format.Schema)
	case len(r.Tools) > 0:
		a.readSchema(r.Tools[0].Schema)
		if a.tool = r.Tools[0].Name; !forced { // it is free to answer in a text
			a.tool = ""
		}
	}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// serveMessages answers a request for a message.
func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request, body []byte) {
	a := s.arrive(r, body)
	defer s.leave(a)
	var fault Fault
	if !a.apart {
		fault = s.fault(a)
	}
	if !s.wait(r, s.options.Latency) {
		return
	}
	switch {
	case fault.Kind == Hang:
		s.wait(r, time.Hour)
		return
	case fault.Kind == Status:
		fault.waits(w)
		refuseMessage(w, fault.Status, fault.Message)
		return
	case fault.ends(w):
		return
	case s.options.Key != "" && r.Header.Get("X-Api-Key") != s.options.Key:
		refuseMessage(w, http.StatusUnauthorized, "invalid x-api-key: "+r.Header.Get("X-Api-Key"))
		return
	}
	c, err := s.messageFor(a, fault)
	switch {
	case err != nil:
		refuseMessage(w, http.StatusBadRequest, err.Error())
		return
	case c.choices[0].finish == "error" && !a.stream:
		refuseMessage(w, overloaded, "Overloaded")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	reply, _ := json.Marshal(messageOf(a, c)) // made there
	if a.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		reply = eventsOf(a, c)
	}
	fault.send(w, reply)
}

// messageFor is the one choice of a message, or why it is refused.
func (s *Server) messageFor(a Ask, fault Fault) (completion, error) {
	if a.invalid != "" {
		return completion{}, errors.New(a.invalid)
	}
	if err := s.unsupported(a); err != nil {
		return completion{}, err
	}
	if s.options.Refuse != nil && !a.apart && s.options.Refuse(a) {
		return completion{}, errors.New("refused, as the test says")
	}
	return s.complete(a, fault)
}

// overloaded is a status of Anthropic's that stands in no list.
const overloaded = 529

// refuseMessage answers with an error in Anthropic's form.
func refuseMessage(w http.ResponseWriter, status int, message string) {
	kinds := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
		http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
		http.StatusInternalServerError: "api_error", overloaded: "overloaded_error",
	}
	kind := kinds[status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	if message == "" {
		message = fmt.Sprintf("status %d, as the test says", status)
	}
	text, _ := json.Marshal(object{"type": "error", "error": object{"type": kind, "message": message}}) // made here
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
