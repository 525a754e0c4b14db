package hashing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/racflow/racflow/plugins/internal/hashed"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

type config struct {
	Dimension int `config:"dimension" default:"4096" min:"64" max:"65536" doc:"Length of the vectors; fewer dimensions take less space, and different features share them more often."`
}

// learnt is the file of what Fit has learnt.
const learnt = "frequencies"

// Stage describes the embedder.
func Stage() sdk.Stage {
	return sdk.EmbedStage("hashing", "Hashed TF-IDF vectors of words and character n-grams; needs no model file and is clearly weaker than a model such as minilm.",
		open, sdk.Revision("1"), sdk.PreferBatch(128), sdk.Fits(sdk.ColumnText))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Embedder, error) {
	analyzer, err := analyze.Named("standard")
	if err != nil {
		return nil, err
	}
	e := &embedder{dimension: c.Dimension, analyzer: analyzer, dir: setup.StateDir}
	if e.dir == "" {
		return e, nil
	}
	state, err := os.ReadFile(filepath.Join(e.dir, learnt))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	return e, e.use(state)
}

type embedder struct {
	dimension int
	analyzer  analyze.Analyzer
	dir       string // for what Fit has learnt; empty: there is none

	mu    sync.RWMutex
	state []byte // in use
	idf   *idf   // made from state
}

func (e *embedder) Dimension() int { return e.dimension }

// Fit counts in which of the texts the features occur. From then on this process embeds
// with that, as a later one with the same folder will.
func (e *embedder) Fit(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	var learned counts
	x := &hashed.Extractor{Analyzer: e.analyzer}
	for batch, err := range rows {
		for i := range batch {
			learned.add(x, batch[i].Text)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	if e.dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	state, file := learned.state(), filepath.Join(e.dir, learnt)
	if err := os.WriteFile(file+".new", state, 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	return e.use(state)
}

func (e *embedder) use(state []byte) error {
	t, err := readState(state)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.idf = state, t
	return nil
}

// Fingerprint changes with the formula, the dimension and what was learnt.
func (e *embedder) Fingerprint() string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return fmt.Sprintf("%d %x", e.dimension, sha256.Sum256(e.state))
}

// Embed implements sdk.Embedder. Queries and passages are embedded alike.
func (e *embedder) Embed(ctx context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	e.mu.RLock()
	t := e.idf
	e.mu.RUnlock()
	x := &hashed.Extractor{Analyzer: e.analyzer}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = e.embed(x, t, text)
	}
	return vectors, nil
}

func (e *embedder) embed(x *hashed.Extractor, t *idf, text string) []float32 {
	vector := make([]float32, e.dimension)
	x.Each(text, func(hash uint64, weight float32, times int) {
		value := weight * t.of(hash) * float32(math.Sqrt(float64(times)))
		if hash>>63 == 1 {
			value = -value
		}
		vector[hash%uint64(e.dimension)] += float32(value) // not fused with the product
	})
	sum := 0.0
	for _, v := range vector {
		sum += float64(v) * float64(v) // the product is exact
	}
	if sum > 0 {
		norm := float32(math.Sqrt(sum))
		for i := range vector {
			vector[i] /= norm
		}
	}
	return vector
}
