package embed

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

const path = "/embeddings"

// input is the body of a request.
type input struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
	Encoding   string   `json:"encoding_format"`
}

// output is the body of a reply.
type output struct {
	Data []struct {
		Index     int             `json:"index"`
		Embedding json.RawMessage `json:"embedding"` // numbers, or their base64
	} `json:"data"`
}

// request sends one request. It returns the vectors, and errors for texts without one. If the server knows no base64,
// it sends a second request.
func (e *openAIEmbedder) request(ctx context.Context, texts []string) (vectors [][]float32, refused map[int]error, err error) {
	if e.numbers.Load() {
		return e.post(ctx, texts, "float")
	}
	vectors, refused, err = e.post(ctx, texts, "base64")
	if api.BadRequest(err) && !e.base64.Load() { // base64 may be the reason
		if vectors, refused, err = e.post(ctx, texts, "float"); err == nil {
			e.numbers.Store(true)
		}
	}
	return vectors, refused, err
}

// post sends one request. It caches the vectors before the call is released.
func (e *openAIEmbedder) post(ctx context.Context, texts []string, encoding string) (vectors [][]float32, refused map[int]error, err error) {
	var reply output
	request := api.Request{Client: e.Client, Bounded: true, OnReply: func() error {
		e.works.Store(true)
		if encoding == "base64" {
			e.base64.Store(true)
		}
		if vectors, refused, err = e.check(len(texts), reply); err == nil && e.dimension > 0 {
			e.store(ctx, texts, vectors)
		}
		return err
	}}
	body := input{Model: e.config.Model, Input: texts, Dimensions: e.config.Dimensions, Encoding: encoding}
	err = request.Post(ctx, path, body, &reply)
	return vectors, refused, err
}

// store caches vectors, except nil ones.
func (e *openAIEmbedder) store(ctx context.Context, texts []string, vectors [][]float32) {
	values := make([][]byte, len(vectors))
	for i, v := range vectors {
		if v != nil {
			values[i] = raw(v)
		}
	}
	e.CachePut(ctx, e.keys(texts), values)
}

// check returns the vectors of a reply, which should contain n.
func (e *openAIEmbedder) check(n int, reply output) (vectors [][]float32, refused map[int]error, err error) {
	if len(reply.Data) == 0 {
		return nil, nil, api.NoAnswer(fmt.Sprintf("the server gave no vectors for %d texts; check base_url and model", n))
	}
	if len(reply.Data) != n {
		return nil, nil, sdk.Transient(fmt.Errorf("the server gave %d vectors for %d texts", len(reply.Data), n), 0)
	}
	ordered := true // a server without index returns 0 for all
	for _, d := range reply.Data {
		ordered = ordered && d.Index == 0
	}
	vectors, refused = make([][]float32, n), map[int]error{}
	seen := make([]bool, n)
	for i, d := range reply.Data {
		at := d.Index
		if ordered {
			at = i
		}
		if at < 0 || at >= n || seen[at] {
			return nil, nil, sdk.Transient(fmt.Errorf("the server gave a vector for text %d of %d twice, or for none", at, n), 0)
		}
		seen[at] = true
		v, err := decode(d.Embedding)
		if err == nil && e.dimension > 0 && len(v) != e.dimension { // 0: not known yet
			if e.notePath != "" {
				_ = os.Remove(e.notePath) // the next start asks again
			}
			return nil, nil, sdk.Invalid(fmt.Errorf("the server's vectors have %d numbers, not %d; "+
				"where the model behind its name has changed, start again, or write another dimension", len(v), e.dimension))
		}
		if err == nil {
			err = openAINormalise(v)
		}
		if err != nil {
			refused[at] = sdk.Invalid(fmt.Errorf("the server's vector cannot be used: %w", err))
			continue
		}
		vectors[at] = v
	}
	return vectors, refused, nil
}

// decode reads numbers or their base64.
func decode(value json.RawMessage) ([]float32, error) {
	var text string
	if bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &text) == nil {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(data) == 0 || len(data)%4 != 0 {
			return nil, errors.New("it is not the base64 of numbers of four bytes")
		}
		return floats(data), nil
	}
	if bytes.Contains(value, []byte("null")) { // some servers write NaN like this
		return nil, errNotANumber
	}
	var v []float32
	if err := json.Unmarshal(value, &v); err != nil || len(v) == 0 {
		return nil, errors.New("it is not a list of numbers")
	}
	return v, nil
}

var errNotANumber = errors.New("it holds what is not a number")

// openAINormalise normalises a vector to norm 1.
func openAINormalise(v []float32) error {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return errNotANumber
	}
	if sum == 0 {
		return errors.New("it is zero")
	}
	norm := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / norm)
	}
	return nil
}

// raw and floats convert a vector to bytes and back: four bytes per number, little-endian, both in the cache and in
// base64.
func raw(v []float32) []byte {
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

func floats(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}
