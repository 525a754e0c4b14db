package encoder

import (
	"context"
	"fmt"
	"math"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/sdk"
)

// source is what a model is opened from, in one precision or another.
type source struct {
	dir            string
	options        encoder.Options
	query, passage *string // prompts; nil: the folder's own
}

func (s source) open(p encoder.Precision) (embedder, error) {
	s.options.Precision = p
	e, err := encoder.Open(s.dir, s.options)
	if err != nil {
		return embedder{}, err
	}
	m := embedder{Encoder: e, precision: p}
	m.query, m.passage = e.Prompts()
	if s.query != nil {
		m.query = *s.query
	}
	if s.passage != nil {
		m.passage = *s.passage
	}
	return m, nil
}

// embedder is a model as a stage.
type embedder struct {
	*encoder.Encoder
	precision      encoder.Precision
	query, passage string // prompts
}

// Dimension implements sdk.Embedder.
func (e embedder) Dimension() int { return e.Dim() }

// Embed implements sdk.Embedder.
func (e embedder) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	prompt := e.passage
	if role == sdk.RoleQuery {
		prompt = e.query
	}
	vectors, err := e.EncodePrompt(ctx, prompt, texts)
	for _, v := range vectors {
		normalise(v)
	}
	return vectors, err
}

// Fingerprint implements sdk.Fingerprinter.
func (e embedder) Fingerprint() string {
	print := e.Encoder.Fingerprint()
	if query, passage := e.Prompts(); e.query != query || e.passage != passage {
		print = fmt.Sprintf("%s %q %q", print, e.query, e.passage)
	}
	return print
}

// normalise makes the length of v 1, as stages owe it, where the model has not done so.
func normalise(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.Abs(sum-1) < 1e-4 || sum == 0 {
		return
	}
	factor := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= factor
	}
}

// resolved is an embedder whose precision was left to it.
type resolved struct{ embedder }

// Resolved implements sdk.Resolver.
func (r resolved) Resolved() map[string]any {
	return map[string]any{"precision": string(r.precision)}
}
