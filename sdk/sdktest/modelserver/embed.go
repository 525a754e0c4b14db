package modelserver

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// embed returns the reply of the endpoint for embeddings.
func (s *Server) embed(a Ask, fault Fault) (object, error) {
	limit := s.options.MaxInputs
	if limit == 0 {
		limit = 2048
	}
	switch {
	case len(a.Inputs) == 0 || len(a.Inputs) > limit:
		return nil, fmt.Errorf("input: %d texts are not allowed", len(a.Inputs))
	case slices.Contains(a.Inputs, ""):
		return nil, errors.New("input: a text is empty")
	case a.base64 && s.options.Base64 == Base64Refused:
		return nil, errors.New("encoding_format: base64 is unknown")
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
	return object{"object": "list", "model": a.Model, "data": data, "usage": object{"prompt_tokens": in, "total_tokens": in}}, nil
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
