package openai

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

type embedder struct {
	*api.Client
	config    config
	dimension int
	notePath  string // of the file that holds the dimension; empty: none

	inputs  atomic.Int32 // most texts per request
	works   atomic.Bool  // a request has succeeded
	base64  atomic.Bool  // and one with base64
	numbers atomic.Bool  // the server refuses base64
}

// Dimension is the length of the vectors.
func (e *embedder) Dimension() int { return e.dimension }

// together bounds the requests of one batch under way.
const together = 8

// Embed implements sdk.Embedder.
func (e *embedder) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	rows := map[string][]int{} // of each text; every text is embedded once
	var distinct []string
	for i, text := range texts {
		text = strings.ToValidUTF8(text, "\uFFFD")
		if strings.TrimSpace(strings.ReplaceAll(text, "\x00", "")) == "" {
			vectors[i] = make([]float32, e.dimension) // nothing to embed
			continue
		}
		text = e.prefix(role) + text
		if rows[text] == nil {
			distinct = append(distinct, text)
		}
		rows[text] = append(rows[text], i)
	}
	missing, err := e.recall(ctx, distinct, func(text string, v []float32) {
		for _, row := range rows[text] {
			vectors[row] = v
		}
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	failed := sdk.RowErrors{}
	var calls errgroup.Group // without a context: vectors of other requests are still cached
	calls.SetLimit(together)
	for _, part := range e.pack(missing) {
		calls.Go(func() error {
			found, refused, err := e.embed(ctx, part)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i, text := range part {
				for _, row := range rows[text] {
					if vectors[row] = found[i]; refused[i] != nil {
						failed[row] = refused[i]
					}
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return vectors, failed
	}
	return vectors, nil
}

func (e *embedder) prefix(role sdk.Role) string {
	if role == sdk.RoleQuery {
		return e.config.QueryPrefix
	}
	return e.config.PassagePrefix
}

// keys name the vectors of texts.
func (e *embedder) keys(texts []string) []sdk.Key {
	identity, keys := e.identity(), make([]sdk.Key, len(texts))
	for i, text := range texts {
		keys[i] = sdk.KeyOf(identity, text)
	}
	return keys
}

// recall hands out cached vectors and returns the other texts.
func (e *embedder) recall(ctx context.Context, texts []string, found func(string, []float32)) (missing []string, err error) {
	values, err := e.CacheGet(ctx, e.keys(texts))
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if len(values[i]) == 4*e.dimension {
			found(text, floats(values[i]))
		} else {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// pack divides texts into the inputs of requests.
func (e *embedder) pack(texts []string) (parts [][]string) {
	most, bytes, from := int(e.inputs.Load()), 0, 0
	for i, text := range texts {
		if i > from && (i-from == most || bytes+len(text) > mostBytes) {
			parts, from, bytes = append(parts, texts[from:i]), i, 0
		}
		bytes += len(text)
	}
	if from < len(texts) {
		parts = append(parts, texts[from:])
	}
	return parts
}

// embed returns the vectors of texts, and the errors of those that have none. A request
// that is refused is divided in halves.
func (e *embedder) embed(ctx context.Context, texts []string) (vectors [][]float32, refused map[int]error, err error) {
	vectors, refused, err = e.request(ctx, texts)
	switch {
	case err == nil:
		return vectors, refused, nil
	case !api.BadRequest(err):
		return nil, nil, err
	case len(texts) == 1:
		return make([][]float32, 1), map[int]error{0: err}, nil
	}
	if !e.works.Load() { // may be refused for other reasons than the texts
		for _, i := range []int{0, len(texts) - 1} {
			if _, _, again := e.request(ctx, texts[i:i+1]); again == nil {
				break
			} else if i > 0 {
				return nil, nil, fmt.Errorf("%w (nor does it take one text)", err)
			}
		}
	}
	half := len(texts) / 2
	vectors, refused = make([][]float32, 0, len(texts)), map[int]error{}
	for _, part := range [][]string{texts[:half], texts[half:]} {
		v, r, err := e.embed(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		for i, why := range r {
			refused[len(vectors)+i] = why
		}
		vectors = append(vectors, v...)
	}
	if len(refused) == 0 { // too many at a time
		lower(&e.inputs, len(texts)-half)
	}
	return vectors, refused, nil
}
