package modelserver

import (
	"fmt"
	"strings"
)

// usualThoughts are those of a model that nobody told what to think.
var usualThoughts = strings.Repeat("Let me see. The text could be about one thing, or about quite another.\nBut wait: what does the list say?\n", 4)

// think returns what the model thinks before an answer: what stands before it in the same
// text, and what stands apart.
func (s *Server) think(a Ask, choice int) (before, apart string) {
	thoughts := usualThoughts
	switch {
	case s.options.ThoughtsOf != nil && !a.apart:
		thoughts = s.options.ThoughtsOf(a, choice)
	case s.options.Thoughts != "":
		thoughts = s.options.Thoughts
	}
	switch a.effort {
	case "low":
		thoughts = thoughts[:len(thoughts)/4]
	case "minimal", "none":
		return "", ""
	}
	if a.thinking {
		return "", thoughts
	}
	switch s.options.Thinks {
	case InTags:
		return "<think>\n" + thoughts + "\n</think>\n\n", ""
	case InOtherTags:
		return "<thinking>\n" + thoughts + "\n</thinking>\n\n", ""
	case InChannels:
		return "<|channel|>analysis<|message|>" + thoughts + "<|end|><|start|>assistant<|channel|>final<|message|>", ""
	case InAField, Silently:
		return "", thoughts
	}
	return "", ""
}

// refusal is an error that names the field that it is about.
type refusal struct {
	message string
	param   string
	code    string
}

func (r *refusal) Error() string { return r.message }

// unsupported is the refusal of a field that the model does not take.
func (s *Server) unsupported(a Ask) error {
	if a.Inputs != nil {
		return nil
	}
	for _, name := range s.options.Unsupported {
		param := name
		var given bool
		switch name {
		case "n":
			given = a.N > 1
		case "stop":
			given = len(a.stop) > 0
		case "logprobs":
			given = a.logprobs
		case "json_schema", "json_object":
			param, given = "response_format", a.format == name
		case "choice":
			param = "structured_outputs"
			_, given = a.sent[param]
		case "whole":
			param, given = "stream", !a.stream
		default:
			given = a.sent[name] != nil && string(a.sent[name]) != "null"
		}
		if !given {
			continue
		}
		message := fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", param)
		switch {
		case name == "whole":
			message = "This model only supports streaming: set 'stream' to true."
		case name != param:
			message = fmt.Sprintf("Invalid parameter: '%s' of type '%s' is not supported with this model.", param, name)
		}
		if s.options.Nameless {
			param = ""
		}
		return &refusal{message, param, "unsupported_parameter"}
	}
	return nil
}

// holds reports whether a request's own text holds a word.
func holds(word string) func(Ask) bool {
	return func(a Ask) bool { return strings.Contains(a.Whole(), word) }
}
