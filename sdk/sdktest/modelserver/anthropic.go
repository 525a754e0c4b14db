package modelserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The server also offers Anthropic's Messages API below the same address, at /messages, with the same
// options and faults. A message has one choice, and its own form of system prompts and errors.

// messagesFields are the fields of a request that the API knows; it refuses all others.
var messagesFields = []string{
	"model", "max_tokens", "system", "messages", "temperature", "top_p", "top_k", "stop_sequences", "stream", "thinking", "output_config",
	"tools", "tool_choice", "metadata", "service_tier", "cache_control", "container", "inference_geo",
}

// messages reports whether a path belongs to Anthropic's API.
func messages(path string) bool {
	return strings.HasSuffix(path, "/messages") || strings.Contains(path, "/messages/")
}

// readMessages reads the body of a request for a message; it writes an error into a.invalid.
func (a *Ask) readMessages() {
	r := a.sent
	a.Model, a.N, a.maxTokens, a.stop = r.Get("model").String(), 1, int(r.Get("max_tokens").Int()), texts(r.Get("stop_sequences"))
	for _, sent := range r.Get("messages").Array() {
		a.Messages = append(a.Messages, a.readMessage(sent.Get("role").String(), sent.Get("content")))
	}
	temperature, thinking, choice := r.Get("temperature"), r.Get("thinking.type").String(), r.Get("tool_choice.type").String()
	budget := int(r.Get("thinking.budget_tokens").Int())
	a.effort, a.thinking = r.Get("output_config.effort").String(), thinking == "enabled" || thinking == "adaptive"
	forced := choice == "tool" || choice == "any"
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{a.Header.Get("anthropic-version") == "", "anthropic-version: header is required"},
		{a.maxTokens < 1, "max_tokens: Field required"},
		{len(a.Messages) == 0 || a.Messages[0].Role != "user", "messages: first message must use the \"user\" role"},
		{temperature.Exists() && (temperature.Float() > 1 || temperature.Float() < 0), "temperature: range: 0..1"},
		{a.thinking && temperature.Exists() && temperature.Float() != 1, "`temperature` may only be set to 1 when thinking is enabled"},
		{a.thinking && forced, "Thinking may not be enabled when tool_choice forces tool use."},
		{r.Get("stream").Bool(), "stream: this server sends messages whole"},
		{thinking == "enabled" && budget < 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
		{thinking == "enabled" && budget >= a.maxTokens, "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{slices.ContainsFunc(a.stop, blank), "stop_sequences: each stop sequence must contain non-whitespace"},
		{slices.ContainsFunc(a.Messages, func(m Message) bool { return m.Content == "" }), "messages: text content blocks must be non-empty"},
		{slices.ContainsFunc(a.Messages, func(m Message) bool { return m.Role != "user" && m.Role != "assistant" }), "messages: Unexpected role; use the top-level `system` parameter"},
	} {
		if rule.broken && a.invalid == "" {
			a.invalid = rule.message
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Map())) {
		if !slices.Contains(messagesFields, name) && a.invalid == "" {
			a.invalid = name + ": Extra inputs are not permitted"
		}
	}
	if system := r.Get("system"); system.Exists() {
		m := a.readMessage("system", system)
		if m.Content == "" {
			a.invalid = "system: text content blocks must be non-empty"
		}
		a.Messages = append([]Message{m}, a.Messages...)
	}
	if strings.Count(string(a.Body), `"cache_control"`) > 4 {
		a.invalid = "A maximum of 4 blocks with cache_control may be provided."
	}
	format, tool := r.Get("output_config.format"), r.Get("tools.0")
	switch {
	case format.Exists():
		a.format = format.Get("type").String()
		a.readSchema(format.Get("schema"))
	case tool.Exists():
		a.readSchema(tool.Get("input_schema"))
		if forced { // otherwise the model may answer with a text
			a.tool = tool.Get("name").String()
		}
	}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// overloaded is a status of Anthropic's that package http does not list.
const overloaded = 529

// errorKinds are the error types of all statuses that are no invalid_request_error.
var errorKinds = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusInternalServerError: "api_error", overloaded: "overloaded_error",
}

// stopReasons are Anthropic's words for the reasons why an answer ended.
var stopReasons = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}

// messageOf returns a completion in the form of Anthropic's message.
func messageOf(a Ask, c completion) object {
	of, content := c.choices[0], []object{}
	if of.thoughts != "" || a.thinking {
		content = append(content, object{"type": "thinking", "thinking": of.thoughts, "signature": "signed"})
	}
	switch {
	case of.tool != "":
		content = append(content, object{"type": "tool_use", "id": "toolu_1", "name": of.tool, "input": json.RawMessage(of.call)})
	case of.text != "":
		content = append(content, object{"type": "text", "text": of.text})
	}
	m := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": stopReasons[of.finish], "stop_sequence": nil,
	}
	if of.refusal != "" || of.finish == "content_filter" {
		m["stop_reason"], m["stop_details"] = "refusal", object{"type": "refusal", "category": nil, "explanation": of.refusal}
	}
	if c.usage != nil {
		m["usage"] = messageUsage(a, *c.usage)
	}
	return m
}

// messageUsage counts tokens that were read from the cache or written to it separately: the tokens up
// to the last mark.
func messageUsage(a Ask, u usage) object {
	prefix, marked := 0, 0
	for _, m := range a.Messages {
		if prefix += len(m.Content) / 4; m.Marked {
			marked = prefix
		}
	}
	cached := min(u.cached, marked)
	created := marked - cached
	counted := object{
		"input_tokens": u.in - cached - created, "cache_read_input_tokens": cached, "cache_creation_input_tokens": created, "output_tokens": u.out,
	}
	if u.thought > 0 {
		counted["output_tokens_details"] = object{"thinking_tokens": u.thought}
	}
	return counted
}
