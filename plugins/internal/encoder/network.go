package encoder

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/folder"
	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/tokenizer"
)

// network is a tokenizer and the layers for its tokens.
type network struct {
	tokenizer  *tokenizer.Tokenizer
	limit      int // tokens of a text
	model      *transformer.Model
	kernel     *simd.Kernel
	workspaces sync.Pool // of *transformer.Workspace
}

// openNetwork reads tokenizer and weights, and adds them to sum. head, where there is one, reads
// what else is in the weights.
func openNetwork(f folder.Model, o Options, sum io.Writer, head func(*transformer.Reader)) (*network, error) {
	n := &network{limit: f.MaxTokens, kernel: o.Kernel}
	var err error
	if n.tokenizer, err = openTokenizer(f.Dir, sum); err != nil {
		return nil, err
	}
	if f.LowerCase && !ignoresCase(n.tokenizer) {
		return nil, fmt.Errorf("%s: model is not supported: do_lower_case in sentence_bert_config.json with a tokenizer that keeps case", f.Dir)
	}
	err = readWeights(f.Dir, o, sum, func(r *transformer.Reader) {
		n.model, _ = transformer.New(f.Shape, n.tokenizer.Size(), r) // r keeps the error
		if head != nil {
			head(r)
		}
	})
	if err != nil {
		return nil, err
	}
	n.workspaces.New = func() any { return n.model.NewWorkspace() }
	return n, nil
}

// readWeights calls read with the weights in a folder, and writes them to sum.
func readWeights(dir string, o Options, sum io.Writer, read func(*transformer.Reader)) error {
	weights, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer weights.Close()
	// The sum takes longer than the rest, so it is computed at the same time, but not to its
	// end where the weights are of no use.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	summed := make(chan error, 1)
	go func() { summed <- weights.Sum(ctx, sum) }()
	r := transformer.NewReader(weights, o.Kernel, o.Precision)
	if read(r); r.Err() != nil {
		cancel()
	}
	sumErr := <-summed
	weights.Forget()
	if r.Err() != nil {
		return r.Err()
	}
	return sumErr
}

// batchTokens is how many tokens go through the layers together: enough that weights
// are read rarely, few enough that results stay in the cache.
const batchTokens = 512

// job is one text, or one pair, and where its result goes.
type job struct {
	text   transformer.Text
	skip   int // tokens at its beginning that do not count
	result []float32
}

// whole is a text that is no pair.
func whole(tokens []int32) transformer.Text {
	return transformer.Text{Tokens: tokens, Second: len(tokens)}
}

// run computes the hidden states of every job, and calls finish with them, until there are
// none left or ctx ends. It sorts the jobs.
func (n *network) run(ctx context.Context, jobs []job, finish func(j job, x simd.View)) {
	// Long texts first, so that no goroutine is left with one at the end.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(len(b.text.Tokens), len(a.text.Tokens)) })
	batches := cutBatches(jobs, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batches)) {
		workers.Go(func() {
			w := n.workspaces.Get().(*transformer.Workspace)
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

func (n *network) runBatch(batch []job, w *transformer.Workspace, finish func(j job, x simd.View)) {
	texts := make([]transformer.Text, len(batch))
	for i, j := range batch {
		texts[i] = j.text
	}
	x := n.model.Forward(texts, w)
	row := 0
	for _, j := range batch {
		rows := len(j.text.Tokens)
		finish(j, simd.View{Data: x.Data[row*x.Stride:], Rows: rows, Cols: x.Cols, Stride: x.Stride})
		row += rows
	}
}

// cutBatches divides jobs into batches of about equal size, about batchTokens at most,
// so that all workers are busy to the end.
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
