package modelserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// whole is a completion as one JSON object.
func (s *Server) whole(c completion) object {
	choices := []object{}
	for i, of := range c.choices {
		made := object{"index": i, "finish_reason": of.finish}
		if c.chat {
			made["message"] = s.message(of)
		} else {
			made["text"] = of.text
		}
		if of.logprobs != nil {
			made["logprobs"] = of.logprobs
		}
		choices = append(choices, made)
	}
	reply := object{"object": "completion", "model": c.model, "choices": choices}
	if c.usage != nil {
		reply["usage"] = c.usage
	}
	return reply
}

// message is a choice as a message of a chat.
func (s *Server) message(c choice) object {
	m := object{"role": "assistant", "content": c.text}
	switch {
	case c.refusal != "":
		m["content"], m["refusal"] = nil, c.refusal
	case c.tool != "":
		m["content"], m["tool_calls"] = nil, []object{call(c)}
	case s.options.Shape == AsParts:
		m["content"] = []object{{"type": "text", "text": c.text}}
	}
	if c.thoughts != "" {
		m["reasoning_content"] = c.thoughts
	}
	return m
}

func call(c choice) object {
	return object{"id": "call_1", "type": "function", "function": object{"name": c.tool, "arguments": c.call}}
}

// stream is a completion as server-sent events: the choices in turns, in pieces of some
// characters, then the usage where the request asks for it.
func (s *Server) stream(c completion, usage bool) []byte {
	var b strings.Builder
	send := func(chunk object) {
		text, _ := json.Marshal(chunk) // made above
		fmt.Fprintf(&b, "data: %s\n\n", text)
	}
	chunk := func(i int, delta object, finish any) {
		made := object{"index": i, "finish_reason": finish}
		if c.chat {
			made["delta"] = delta
		} else {
			made["text"] = delta["content"]
		}
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{made}})
	}
	b.WriteString(": a comment, as servers send it while they compute\n\n")
	for i, of := range c.choices {
		if c.chat {
			chunk(i, object{"role": "assistant", "content": ""}, nil)
		}
		for piece := range pieces(of.thoughts) {
			chunk(i, object{"reasoning_content": piece}, nil)
		}
		if of.tool != "" {
			first := call(of)
			first["index"], first["function"] = 0, object{"name": of.tool, "arguments": ""}
			chunk(i, object{"tool_calls": []object{first}}, nil)
		}
		for piece := range pieces(of.call) {
			chunk(i, object{"tool_calls": []object{{"index": 0, "function": object{"arguments": piece}}}}, nil)
		}
		for piece := range pieces(of.text) {
			chunk(i, object{"content": piece}, nil)
		}
		if of.refusal != "" {
			chunk(i, object{"refusal": of.refusal}, nil)
		}
	}
	for i, of := range c.choices {
		made := object{"index": i, "finish_reason": of.finish, "delta": object{}}
		if !c.chat {
			delete(made, "delta")
			made["text"] = ""
		}
		if of.logprobs != nil {
			made["logprobs"] = of.logprobs
		}
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{made}})
	}
	if usage && c.usage != nil {
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{}, "usage": c.usage})
	}
	b.WriteString("data: [DONE]\n\n")
	return []byte(b.String())
}

// pieces are those of a text, of seven bytes: characters of several bytes stay whole.
func pieces(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for runes := range slices.Chunk([]rune(text), 7) {
			if !yield(string(runes)) {
				return
			}
		}
	}
}
