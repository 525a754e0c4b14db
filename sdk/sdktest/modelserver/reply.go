package modelserver

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// completion is the reply of the two endpoints for texts, before it is written whole or as
// a stream.
type completion struct {
	model   string
	chat    bool
	choices []choice
	usage   object // nil: none
}

// choice is one answer.
type choice struct {
	text     string
	thoughts string // beside the text
	refusal  string
	call     string // arguments of a tool call, in place of the text
	tool     string // that is called
	finish   string
	logprobs object
}

// complete returns the reply of the two endpoints for texts.
func (s *Server) complete(a Ask, fault Fault) (completion, error) {
	n := a.N
	switch {
	case s.options.IgnoreN:
		n = 1
	case n < 1 || n > 128 || s.options.MaxN > 0 && n > s.options.MaxN:
		return completion{}, fmt.Errorf("n: %d is not allowed", n)
	case a.Whole() == "":
		return completion{}, fmt.Errorf("there is nothing to answer")
	}
	switch fault.Kind {
	case Fewer:
		n--
	case More:
		n++
	}
	c, out, thought := completion{model: a.Model, chat: len(a.Messages) > 0}, 0, 0
	for i := range n {
		choice, thoughts := s.choice(a, i, fault)
		out += s.tokens(choice.text) + s.tokens(choice.call) + s.tokens(thoughts)
		thought += s.tokens(thoughts)
		c.choices = append(c.choices, choice)
	}
	if fault.Kind == HalfBody || fault.Kind == Broken {
		n = 0 // they do not arrive
	}
	in, cached := s.charge(a, n)
	c.usage = s.usage(in, cached, out, thought)
	return c, nil
}

// usage is what a reply says of its tokens; thought are those of out that nobody sees, or
// that stand apart.
func (s *Server) usage(in, cached, out, thought int) object {
	switch s.options.Usage {
	case UsageMissing:
		return nil
	case UsageAbsurd:
		return object{"prompt_tokens": in, "completion_tokens": math.MaxInt64, "total_tokens": math.MaxInt64}
	}
	usage := object{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out, "prompt_tokens_details": object{"cached_tokens": cached},
	}
	if thought > 0 {
		usage["completion_tokens_details"] = object{"reasoning_tokens": thought}
	}
	return usage
}

// choice is one answer, with the model's thoughts where they stand apart from it.
func (s *Server) choice(a Ask, number int, fault Fault) (c choice, thoughts string) {
	text := s.text(a, number)
	inside, thoughts := s.think(a, number)
	c = choice{text: inside + text, finish: "stop"}
	if s.options.Stops {
		for _, stop := range a.stop {
			if before, _, found := strings.Cut(c.text, stop); found {
				c.text = before
			}
		}
	}
	if limit := a.maxTokens; limit > 0 && s.tokens(thoughts+c.text) > limit {
		thoughts = s.cut(thoughts, limit)
		c.text, c.finish = s.cut(c.text, limit-s.tokens(thoughts)), "length"
	}
	if s.options.Thinks == InAField || a.thinking {
		c.thoughts = thoughts
	}
	switch fault.Kind {
	case Length:
		c.text, c.finish = c.text[:len(c.text)/2], "length"
	case BrokeOff:
		c.text, c.finish = c.text[:len(c.text)/2], "error"
	case Filter:
		c.text, c.finish = "", "content_filter"
	case Refusal:
		c.text, c.refusal = "", "I can't help with that."
	}
	if a.logprobs {
		c.logprobs = logprobs(c.text, len(a.Messages) > 0)
	}
	if (a.tool != "" || s.options.Shape == AsToolCall) && c.text != "" && c.finish == "stop" {
		c.call, c.tool, c.text, c.finish = c.text, a.tool, "", "tool_calls"
		if !strings.HasPrefix(c.call, "{") {
			c.call = fmt.Sprintf(`{"label": %s}`, quote(c.call))
		}
		if c.tool == "" {
			c.tool = "answer"
		}
	}
	return c, thoughts
}

// text is what the model says at last.
func (s *Server) text(a Ask, choice int) string {
	text := "answer"
	if len(a.Labels) > 0 {
		text = a.Labels[0]
	}
	if s.options.Answer != nil && !a.apart {
		text = s.options.Answer(a, choice)
	}
	object := len(a.Fields) > 0 && !s.options.IgnoreFormat
	if object && !strings.HasPrefix(text, "{") {
		var parts []string // in the order of the schema
		for _, field := range a.Fields {
			value := quote("because")
			switch field {
			case "label":
				value = quote(text)
			case "labels":
				value = "[" + quote(text) + "]"
			}
			parts = append(parts, quote(field)+": "+value)
		}
		text = "{" + strings.Join(parts, ", ") + "}"
	}
	for _, form := range s.options.Forms {
		text = form(text, object)
	}
	return text
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always can be
	return string(quoted)
}

// perToken is the length of a token in bytes.
func (s *Server) perToken() int {
	if s.options.Bytes {
		return 1
	}
	return 4
}

func (s *Server) tokens(text string) int {
	if s.options.Count != nil {
		return s.options.Count(text)
	}
	return (len(text) + s.perToken() - 1) / s.perToken()
}

// cut is as much of a text as has so many tokens.
func (s *Server) cut(text string, tokens int) string {
	if s.options.Count == nil {
		return text[:min(len(text), max(tokens, 0)*s.perToken())]
	}
	return text[:sort.Search(len(text), func(n int) bool { return s.tokens(text[:n+1]) > tokens })]
}

// logprobs gives every token of four characters the probability 0.9.
func logprobs(text string, chat bool) object {
	var pieces []string
	for piece := range slices.Chunk([]byte(text), 4) {
		pieces = append(pieces, string(piece))
	}
	if chat {
		content := []object{}
		for _, piece := range pieces {
			content = append(content, object{"token": piece, "logprob": math.Log(.9)})
		}
		return object{"content": content}
	}
	values := make([]float64, len(pieces))
	for i := range values {
		values[i] = math.Log(.9)
	}
	return object{"tokens": pieces, "token_logprobs": values}
}
