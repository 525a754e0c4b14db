package modelserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

// stopReasons are the words for why an answer ended.
var stopReasons = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}

// messageOf is a completion as Anthropic's message.
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
		m["usage"] = messageUsage(a, c.usage)
	}
	return m
}

// messageUsage counts the tokens apart that were read from the cache or written to it:
// those up to the last mark.
func messageUsage(a Ask, u object) object {
	in, _ := u["prompt_tokens"].(int)
	details, _ := u["prompt_tokens_details"].(object)
	cached, _ := details["cached_tokens"].(int)
	prefix, marked := 0, 0
	for _, m := range a.Messages {
		if prefix += len(m.Content) / 4; m.Marked {
			marked = prefix
		}
	}
	cached = min(cached, marked)
	created := marked - cached
	usage := object{
		"input_tokens": in - cached - created, "cache_read_input_tokens": cached, "cache_creation_input_tokens": created, "output_tokens": u["completion_tokens"],
	}
	if thought, ok := u["completion_tokens_details"].(object); ok {
		usage["output_tokens_details"] = object{"thinking_tokens": thought["reasoning_tokens"]}
	}
	return usage
}

// eventsOf is a message as server-sent events.
func eventsOf(a Ask, c completion) []byte {
	var b strings.Builder
	send := func(kind string, event object) {
		event["type"] = kind
		text, _ := json.Marshal(event) // made here
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, text)
	}
	m := messageOf(a, c)
	content, _ := m["content"].([]object)
	usage, _ := m["usage"].(object)
	begun := object{"id": m["id"], "type": "message", "role": "assistant", "model": c.model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil}
	if usage != nil {
		begun["usage"] = object{
			"input_tokens": usage["input_tokens"], "cache_read_input_tokens": usage["cache_read_input_tokens"],
			"cache_creation_input_tokens": usage["cache_creation_input_tokens"], "output_tokens": 1,
		}
	}
	send("message_start", object{"message": begun})
	send("ping", object{})
	for i, block := range content {
		empty, field, delta, text := object{"type": block["type"]}, "text", "text_delta", block["text"]
		switch block["type"] {
		case "thinking":
			empty["signature"], field, delta, text = "", "thinking", "thinking_delta", block["thinking"]
		case "tool_use":
			empty["id"], empty["name"], empty["input"] = block["id"], block["name"], object{}
			raw, _ := block["input"].(json.RawMessage)
			field, delta, text = "partial_json", "input_json_delta", string(raw)
		}
		if block["type"] != "tool_use" {
			empty[field] = ""
		}
		send("content_block_start", object{"index": i, "content_block": empty})
		whole, _ := text.(string)
		for piece := range pieces(whole) {
			send("content_block_delta", object{"index": i, "delta": object{"type": delta, field: piece}})
		}
		if block["type"] == "thinking" {
			send("content_block_delta", object{"index": i, "delta": object{"type": "signature_delta", "signature": block["signature"]}})
		}
		send("content_block_stop", object{"index": i})
	}
	if c.choices[0].finish == "error" {
		send("error", object{"error": object{"type": "overloaded_error", "message": "Overloaded"}})
		return []byte(b.String())
	}
	end := object{"delta": object{"stop_reason": m["stop_reason"], "stop_sequence": nil, "stop_details": m["stop_details"]}}
	if usage != nil {
		end["usage"] = object{"output_tokens": usage["output_tokens"], "output_tokens_details": usage["output_tokens_details"]}
	}
	send("message_delta", end)
	send("message_stop", object{})
	return []byte(b.String())
}
