package modelserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// complete returns the reply of the two endpoints for texts.
func (s *Server) complete(a Ask, fault Fault) (object, string) {
	n := a.N
	switch {
	case s.options.IgnoreN:
		n = 1
	case n < 1 || n > 128 || s.options.MaxN > 0 && n > s.options.MaxN:
		return nil, fmt.Sprintf("n: %d is not allowed", n)
	case a.Whole() == "":
		return nil, "there is nothing to answer"
	}
	switch fault.Kind {
	case Fewer:
		n--
	case More:
		n++
	}
	choices, out := []object{}, 0
	for i := range n {
		text, finish := s.text(a, i, fault), "stop"
		if limit := s.perToken() * a.maxTokens; limit > 0 && len(text) > limit {
			text, finish = text[:limit], "length"
		}
		out += s.tokens(text)
		choice := object{"index": i, "text": text}
		if len(a.Messages) > 0 {
			message := object{"role": "assistant", "content": text}
			if fault.Kind == Refusal {
				message = object{"role": "assistant", "content": nil, "refusal": "I can't help with that."}
			}
			choice = object{"index": i, "message": message}
		}
		switch fault.Kind {
		case Length:
			finish = "length"
		case Filter:
			finish = "content_filter"
		case BrokeOff:
			finish = "error"
		}
		choice["finish_reason"] = finish
		if a.logprobs {
			choice["logprobs"] = logprobs(text, len(a.Messages) > 0)
		}
		choices = append(choices, choice)
	}
	if fault.Kind == HalfBody || fault.Kind == Broken {
		n = 0 // they do not arrive
	}
	in, cached := s.charge(a, n)
	return object{"object": "completion", "model": a.Model, "choices": choices, "usage": object{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out, "prompt_tokens_details": object{"cached_tokens": cached},
	}}, ""
}

// text is that of one choice.
func (s *Server) text(a Ask, choice int, fault Fault) string {
	text := "answer"
	if len(a.Labels) > 0 {
		text = a.Labels[0]
	}
	if s.options.Answer != nil && !a.apart {
		text = s.options.Answer(a, choice)
	}
	if len(a.Fields) > 0 && !strings.HasPrefix(text, "{") {
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
	switch fault.Kind {
	case Length, BrokeOff:
		return text[:len(text)/2]
	case Refusal, Filter:
		return ""
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

func (s *Server) tokens(text string) int { return (len(text) + s.perToken() - 1) / s.perToken() }

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

// embed returns the reply of the endpoint for embeddings.
func (s *Server) embed(a Ask, fault Fault) (object, string) {
	limit := s.options.MaxInputs
	if limit == 0 {
		limit = 2048
	}
	switch {
	case len(a.Inputs) == 0 || len(a.Inputs) > limit:
		return nil, fmt.Sprintf("input: %d texts are not allowed", len(a.Inputs))
	case slices.Contains(a.Inputs, ""):
		return nil, "input: a text is empty"
	case a.base64 && s.options.Base64 == Base64Refused:
		return nil, "encoding_format: base64 is unknown"
	}
	data, in := []object{}, 0
	for i, text := range a.Inputs {
		in += s.tokens(text)
		vector := s.vector(text, a.dimensions)
		var value any = vector
		if fault.Kind == NaN {
			value = make([]any, len(vector))
		} else if a.base64 && s.options.Base64 == Base64Given {
			var raw []byte
			for _, v := range vector {
				raw = le32(raw, v)
			}
			value = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": value})
	}
	if s.options.Shuffle {
		slices.Reverse(data)
	}
	switch fault.Kind {
	case Fewer:
		data = data[1:]
	case More:
		data = append(data, data[0])
	}
	return object{"object": "list", "model": a.Model, "data": data, "usage": object{"prompt_tokens": in, "total_tokens": in}}, ""
}

func le32(to []byte, v float32) []byte {
	bits := math.Float32bits(v)
	return append(to, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
}

func (s *Server) vector(text string, dimensions int) []float32 {
	if s.options.Vector != nil {
		return s.options.Vector(text)
	}
	n := 8
	if s.options.Dimension > 0 {
		n = s.options.Dimension
	}
	if dimensions > 0 {
		n = dimensions
	}
	draw := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(text))))
	vector := make([]float32, n)
	for i := range vector {
		vector[i] = float32(draw.NormFloat64())
	}
	return vector
}
