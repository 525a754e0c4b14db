package encoder

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/tokenizer"
)

// network is a tokenizer with a transformer.
type network struct {
	tokenizer  *tokenizer.Tokenizer
	limit      int // tokens of a text
	model      *model
	kernel     *simd.Kernel
	workspaces sync.Pool // of *Workspace
}

// Pair is a query and a passage that may answer it.
type Pair struct{ Query, Passage string }

// CrossEncoder is a loaded model that reads a query and a passage together, and scores how relevant the passage is to
// the query (Nogueira and Cho 2019, arXiv:1901.04085). It is safe for concurrent use.
type CrossEncoder struct {
	*network
	dir         string
	head        head
	fingerprint string
}

// OpenCrossEncoder reads the model in folder dir, as [Open] does. Its config.json must name a class with a
// classification head. The score is that of the only label, or of the label relevant, relevance, positive, true, yes
// or entailment.
func OpenCrossEncoder(dir string, o Options) (*CrossEncoder, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if o.Dimensions != 0 {
		return nil, fmt.Errorf("a cross-encoder has no dimensions")
	}
	f, err := readFolder(dir, false)
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
	c.network, err = openNetwork(f, o, sum, func(r *reader) { c.head.read(r, f.Shape) })
	if err != nil {
		return nil, err
	}
	c.fingerprint = finish(sum)
	return c, nil
}

// CheckCrossEncoder checks the configuration in a model's folder. It returns an error if the model is no
// cross-encoder, or is unsupported. It reads neither weights nor tokenizer.
func CheckCrossEncoder(dir string) error {
	f, err := readFolder(dir, false)
	if err == nil {
		_, err = f.Head()
	}
	return err
}

// Fingerprint returns the SHA-256, in hexadecimal, of everything that the scores depend on.
func (c *CrossEncoder) Fingerprint() string { return c.fingerprint }

// Tokens returns how many tokens Score processes for a pair.
func (c *CrossEncoder) Tokens(p Pair) int {
	tokens, _ := c.tokenizer.EncodePair(p.Query, p.Passage, c.limit)
	return len(tokens)
}

// Score returns a score for each pair, in their order: the higher, the more relevant. If a pair is too long, its
// longer text is truncated at the end.
//
// Score uses up to GOMAXPROCS goroutines and checks ctx between batches. It returns the error of ctx, or an error if
// the model's numbers are not finite.
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
			jobs = append(jobs, job{text: text{Tokens: tokens, Second: second}, result: scores[i : i+1]})
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

// head computes a score from hidden states. It is a linear layer with an activation, a norm in ModernBERT, and a
// linear layer with an output for each label.
type head struct {
	Head
	hidden dense
	norm   *norm
	labels dense
}

// read reads the head's weights. The names of its tensors differ between families.
func (h *head) read(r *reader, c Config) {
	hidden, labels := "classifier.dense", "classifier.out_proj"
	h.hidden.activation = tanh
	optionalBias := false
	switch c.Family {
	case bert:
		hidden, labels = r.inside("pooler.dense"), "classifier"
	case distilBERT:
		hidden, labels, h.hidden.activation = "pre_classifier", "classifier", relu
	case modernBERT:
		hidden, labels, h.hidden.activation = "head.dense", "classifier", gelu
		optionalBias = true
		h.norm = r.norm("head.norm", c.Hidden, c.Epsilon, true)
	}
	h.hidden.read(r, hidden, c.Hidden, c.Hidden, optionalBias)
	h.labels.read(r, labels, c.Hidden, h.Labels, false)
}

// score applies the activation to the logit of the label for relevance.
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

// openNetwork reads tokenizer and weights, and adds them to sum. head, if not nil, reads other layers from the
// weights.
func openNetwork(f folder, o Options, sum hash.Hash, head func(*reader)) (*network, error) {
	n := &network{limit: f.MaxTokens, kernel: o.Kernel}
	var err error
	if n.tokenizer, err = openTokenizer(f.Dir, sum); err != nil {
		return nil, err
	}
	if f.LowerCase && !ignoresCase(n.tokenizer) {
		return nil, fmt.Errorf("%s: model is not supported: do_lower_case in sentence_bert_config.json with a tokenizer that keeps case", f.Dir)
	}
	err = readWeights(f.Dir, o, sum, func(r *reader) {
		n.model, _ = newModel(f.Shape, n.tokenizer.Size(), r) // r keeps the error
		if head != nil {
			head(r)
		}
	})
	if err != nil {
		return nil, err
	}
	n.workspaces.New = func() any { return n.model.newWorkspace() }
	return n, nil
}

// readWeights calls read with the weights in a folder, and writes them to sum.
func readWeights(dir string, o Options, sum hash.Hash, read func(*reader)) error {
	weights, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer weights.Close()
	r := newReader(weights, o.Kernel, o.Precision)
	known := newMemo(o.Memos, weights, sum)
	if known.recall(sum) {
		weights.Trust()
		read(r)
		weights.Forget()
		return r.Err()
	}
	// Computing the sum takes longer than the rest, so it runs in parallel. It is cancelled if the weights turn out
	// to be useless.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	summed := make(chan error, 1)
	go func() { summed <- weights.Sum(ctx, sum) }()
	if read(r); r.Err() != nil {
		cancel()
	}
	sumErr := <-summed
	weights.Forget()
	if err := cmp.Or(r.Err(), sumErr); err != nil {
		return err
	}
	known.keep(weights, sum)
	return nil
}

// batchTokens is how many tokens pass through the layers together. With that many, weights are rarely read again, and
// results still stay in the cache.
const batchTokens = 512

// job is a text or a pair, with the place for its result.
type job struct {
	text   text
	skip   int // tokens at the beginning that do not count
	result []float32
}

// whole returns the tokens as a single text, not a pair.
func whole(tokens []int32) text {
	return text{Tokens: tokens, Second: len(tokens)}
}

// run computes the hidden states of every job and calls finish with them. It stops early if ctx ends. It sorts the
// jobs.
func (n *network) run(ctx context.Context, jobs []job, finish func(j job, x simd.View)) {
	// Long texts come first, so that no goroutine is left with a long one at the end.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(len(b.text.Tokens), len(a.text.Tokens)) })
	batches := cutBatches(jobs, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batches)) {
		workers.Go(func() {
			w := n.workspaces.Get().(*workspace)
			defer n.workspaces.Put(w)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return
				}
				n.runBatch(batches[i], w, finish)
			}
		})
	}
	workers.Wait()
}

func (n *network) runBatch(batch []job, w *workspace, finish func(j job, x simd.View)) {
	texts := make([]text, len(batch))
	for i, j := range batch {
		texts[i] = j.text
	}
	x := n.model.forward(texts, w)
	row := 0
	for _, j := range batch {
		rows := len(j.text.Tokens)
		finish(j, simd.View{Data: x.Data[row*x.Stride:], Rows: rows, Cols: x.Cols, Stride: x.Stride})
		row += rows
	}
}

// cutBatches divides jobs into batches of about equal size, at most about batchTokens each, so that all workers are
// busy to the end.
func cutBatches(jobs []job, workers int) [][]job {
	total := 0
	for _, j := range jobs {
		total += len(j.text.Tokens)
	}
	rounds := (total + workers*batchTokens - 1) / (workers * batchTokens)
	size := min(batchTokens, total/max(rounds*workers, 1)+1)
	var batches [][]job
	for start := 0; start < len(jobs); {
		end, tokens := start, 0
		for end < len(jobs) && (end == start || tokens+len(jobs[end].text.Tokens)/2 <= size) {
			tokens += len(jobs[end].text.Tokens)
			end++
		}
		batches = append(batches, jobs[start:end])
		start = end
	}
	return batches
}

// top computes vectors from hidden states: by pooling, linear layers, truncation to the first dimensions (Kusupati et
// al. 2022, arXiv:2205.13147), and normalisation.
type top struct {
	kernel    *simd.Kernel
	pooling   pooling
	dense     []dense
	dim       int
	normalize bool
}

// readTop reads the linear layers after pooling, and adds them to sum.
func readTop(f folder, o Options, sum hash.Hash) (top, error) {
	t := top{kernel: o.Kernel, pooling: f.Pooling, dim: f.Shape.Hidden, normalize: f.Normalize}
	for _, d := range f.Dense {
		if d.In != t.dim {
			return top{}, fmt.Errorf("%s: in_features is %d, but what comes before gives %d", d.Dir, d.In, t.dim)
		}
		layer := dense{activation: d.Activation}
		err := readWeights(d.Dir, o, sum, func(r *reader) {
			layer.read(r, "linear", d.In, d.Out, !d.Bias)
		})
		if err != nil {
			return top{}, err
		}
		t.dense = append(t.dense, layer)
		t.dim = d.Out
	}
	if o.Dimensions < 0 || o.Dimensions > t.dim {
		return top{}, fmt.Errorf("%d dimensions of a model that has %d", o.Dimensions, t.dim)
	}
	if o.Dimensions > 0 {
		t.dim = o.Dimensions
	}
	return t, nil
}

// vector sets a job's result to the vector of its text.
func (t *top) vector(j job, x simd.View) {
	v := j.result
	if len(v) != x.Cols {
		v = make([]float32, x.Cols)
	}
	n := pool(v, t.pooling, x, j.skip)
	scale(v, 1/float32(n))
	for _, layer := range t.dense {
		v = layer.apply(v)
	}
	if len(v) > 0 && &v[0] != &j.result[0] {
		copy(j.result, v)
	}
	if t.normalize {
		length := math.Sqrt(float64(t.kernel.Dot(j.result, j.result)))
		scale(j.result, float32(1/max(length, 1e-12)))
	}
}

// pool adds to v the token vectors that make up a text's vector, without the first skip tokens. It returns their
// number.
func pool(v []float32, by pooling, x simd.View, skip int) int {
	switch by {
	case cls:
		x = simd.View{Data: x.Row(skip), Rows: 1, Cols: x.Cols, Stride: x.Stride}
	case lastToken:
		x = simd.View{Data: x.Row(x.Rows - 1), Rows: 1, Cols: x.Cols, Stride: x.Stride}
	default:
		x = simd.View{Data: x.Data[skip*x.Stride:], Rows: x.Rows - skip, Cols: x.Cols, Stride: x.Stride}
	}
	for i := range x.Rows {
		for col, value := range x.Row(i) {
			v[col] += value
		}
	}
	return x.Rows
}

func scale(v []float32, factor float32) {
	for i := range v {
		v[i] *= factor
	}
}

// dense is a linear layer with an activation, applied to one vector at a time. It always uses float32, since there
// are few such layers.
type dense struct {
	weights    []float32 // a row for each output
	bias       []float32
	in, out    int
	activation activation
}

func (d *dense) read(r *reader, name string, in, out int, optionalBias bool) {
	d.in, d.out = in, out
	d.bias = r.vector(name+".bias", out, optionalBias)
	d.weights = slices.Clone(r.matrix(name+".weight", out, in))
}

// apply returns activation(w·v + bias).
func (d *dense) apply(v []float32) []float32 {
	out := make([]float32, d.out)
	for i := range out {
		out[i] = activate(d.activation, simd.Dot(d.weights[i*d.in:][:d.in], v)+d.bias[i])
	}
	return out
}

func activate(a activation, x float32) float32 {
	switch a {
	case tanh:
		return float32(math.Tanh(float64(x)))
	case relu:
		return max(x, 0)
	case gelu:
		return float32(float64(x) / 2 * math.Erfc(-float64(x)/math.Sqrt2))
	case sigmoid:
		return float32(1 / (1 + math.Exp(-float64(x))))
	}
	return x
}
