package minilm

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// batchTokens is how many tokens go through the layers together: enough that weights
// are read rarely, few enough that results stay in the cache.
const batchTokens = 512

// Encode returns a vector of [Model.Dim] floats for every text, in the order of the
// texts. Texts are truncated at the model's limit, 256 tokens in MiniLM; the empty text
// has a vector too. The vectors share one array.
//
// Encode uses as many goroutines as GOMAXPROCS allows and checks ctx between batches; its
// only error is that of ctx.
func (m *Model) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	dim := m.Dim()
	values := make([]float32, len(texts)*dim)
	jobs := make([]job, len(texts))
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			break
		}
		vectors[i] = values[i*dim : (i+1)*dim : (i+1)*dim]
		jobs[i] = job{tokens: m.tokenizer.Encode(text, m.limit), vector: vectors[i]}
	}
	// Long texts first, so that no goroutine is left with one at the end.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(len(b.tokens), len(a.tokens)) })
	m.runBatches(ctx, cutBatches(jobs, runtime.GOMAXPROCS(0)))
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	return vectors, nil
}

// job is one text: its tokens, and where its vector goes.
type job struct {
	tokens []int32
	vector []float32
}

// cutBatches divides jobs into batches of about equal size, about batchTokens at most,
// so that all workers are busy to the end.
func cutBatches(jobs []job, workers int) [][]job {
	total := 0
	for _, j := range jobs {
		total += len(j.tokens)
	}
	rounds := (total + workers*batchTokens - 1) / (workers * batchTokens)
	size := min(batchTokens, total/max(rounds*workers, 1)+1)
	var batches [][]job
	for start := 0; start < len(jobs); {
		end, tokens := start, 0
		for end < len(jobs) && (end == start || tokens+len(jobs[end].tokens)/2 <= size) {
			tokens += len(jobs[end].tokens)
			end++
		}
		batches = append(batches, jobs[start:end])
		start = end
	}
	return batches
}

// runBatches encodes batches until there are none left or ctx ends.
func (m *Model) runBatches(ctx context.Context, batches [][]job) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batches)) {
		workers.Go(func() {
			w := m.workspaces.Get().(*workspace)
			defer m.workspaces.Put(w)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return
				}
				m.encoder.forward(batches[i], w)
			}
		})
	}
	workers.Wait()
}
