package encoder

import (
	"context"
	"fmt"
	"math"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/folder"
	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// Pair is a query and a passage that may answer it.
type Pair struct{ Query, Passage string }

// CrossEncoder is a loaded model that reads a query and a passage together and says how
// relevant one is to the other (Nogueira and Cho 2019, arXiv:1901.04085). It is safe for
// concurrent use.
type CrossEncoder struct {
	*network
	dir         string
	head        head
	fingerprint string
}

// OpenCrossEncoder reads the model in folder dir, as [Open] does. Its config.json names a
// class with a head for classification, whose score is of the only label, or of the one
// called relevant, relevance, positive, true, yes or entailment.
func OpenCrossEncoder(dir string, o Options) (*CrossEncoder, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if o.Dimensions != 0 {
		return nil, fmt.Errorf("a cross-encoder has no dimensions")
	}
	f, err := folder.Read(dir, false)
	if err != nil {
		return nil, err
	}
	description, err := f.Head()
	if err != nil {
		return nil, err
	}
	if o.MaxTokens > 0 {
		f.MaxTokens = min(f.MaxTokens, o.MaxTokens)
	}
	c := &CrossEncoder{dir: dir, head: head{Head: description}}
	sum := newSum(f, o)
	fmt.Fprintf(sum, "%+v\n", description)
	c.network, err = openNetwork(f, o, sum, func(r *transformer.Reader) { c.head.read(r, f.Shape) })
	if err != nil {
		return nil, err
	}
	c.fingerprint = finish(sum)
	return c, nil
}

// CheckCrossEncoder reports what the configuration in a model's folder says against it: that
// it is no cross-encoder, or one that cannot be computed. Weights and tokenizer are not read.
func CheckCrossEncoder(dir string) error {
	f, err := folder.Read(dir, false)
	if err == nil {
		_, err = f.Head()
	}
	return err
}

// Limit returns how many tokens of a pair are read, special ones included.
func (c *CrossEncoder) Limit() int { return c.limit }

// Fingerprint returns the SHA-256, in hexadecimal, of what the scores depend on.
func (c *CrossEncoder) Fingerprint() string { return c.fingerprint }

// Tokens returns how many tokens of a pair Score computes.
func (c *CrossEncoder) Tokens(p Pair) int {
	tokens, _ := c.tokenizer.EncodePair(p.Query, p.Passage, c.limit)
	return len(tokens)
}

// Score returns a score for each pair, in their order: the higher, the more relevant.
// A pair that is too long is truncated at the end of its longer text.
//
// Score uses as many goroutines as GOMAXPROCS allows and checks ctx between batches. Its
// error is that of ctx, or that of a model whose numbers are not finite.
func (c *CrossEncoder) Score(ctx context.Context, pairs []Pair) ([]float32, error) {
	scores := make([]float32, len(pairs))
	jobs := make([]job, 0, len(pairs))
	for i, p := range pairs {
		if ctx.Err() != nil {
			break
		}
		tokens, second := c.tokenizer.EncodePair(p.Query, p.Passage, c.limit)
		if c.head.OneSegment {
			second = len(tokens)
		}
		if len(tokens) > 0 {
			jobs = append(jobs, job{text: transformer.Text{Tokens: tokens, Second: second}, result: scores[i : i+1]})
		}
	}
	c.run(ctx, jobs, func(j job, x simd.View) { j.result[0] = c.head.score(x) })
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("score %d pairs: %w", len(pairs), err)
	}
	for _, s := range scores {
		if math.IsNaN(float64(s)) || math.IsInf(float64(s), 0) {
			return nil, fmt.Errorf("score %d pairs: the model in %s computes numbers that are not finite: its weights are damaged", len(pairs), c.dir)
		}
	}
	return scores, nil
}

// head makes a score of hidden states: a linear layer with an activation, in ModernBERT a
// norm, and a linear layer with an output for each label.
type head struct {
	folder.Head
	hidden dense
	norm   *transformer.Norm
	labels dense
}

// read reads the head out of the weights. Families call its tensors by other names.
func (h *head) read(r *transformer.Reader, c transformer.Config) {
	hidden, labels := "classifier.dense", "classifier.out_proj"
	h.hidden.activation = folder.Tanh
	optionalBias := false
	switch c.Family {
	case transformer.BERT:
		hidden, labels = r.Inside("pooler.dense"), "classifier"
	case transformer.DistilBERT:
		hidden, labels, h.hidden.activation = "pre_classifier", "classifier", folder.ReLU
	case transformer.ModernBERT:
		hidden, labels, h.hidden.activation = "head.dense", "classifier", folder.GELU
		optionalBias = true
		h.norm = r.Norm("head.norm", c.Hidden, c.Epsilon, true)
	}
	h.hidden.read(r, hidden, c.Hidden, c.Hidden, optionalBias)
	h.labels.read(r, labels, c.Hidden, h.Labels, false)
}

// score is the activation of the logit of the label that stands for relevance.
func (h *head) score(x simd.View) float32 {
	v := make([]float32, x.Cols)
	n := pool(v, h.Pooling, x, 0)
	scale(v, 1/float32(n))
	v = h.hidden.apply(v)
	if h.norm != nil {
		h.norm.Apply(v)
	}
	row := h.labels.weights[h.Label*h.labels.in:][:h.labels.in]
	return activate(h.Activation, simd.Dot(row, v)+h.labels.bias[h.Label])
}
