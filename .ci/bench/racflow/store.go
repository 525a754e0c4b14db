package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
)

// writer is the part of sdk.Store that fills a collection; a store behind the
// wire has it too.
type writer interface {
	Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error)
	Put(ctx context.Context, collection string, entries []sdk.Entry) error
	Commit(ctx context.Context, collection string, note []byte) error
}

const (
	nearest    = 60 // hits of a dense search
	singles    = 64 // queries of a dense search one by one
	batchSize  = 64
	bestTexts  = 10  // hits of a lexical search
	lexicalRun = 250 // queries of a lexical search
)

// openLocal opens the embedded store in this process.
func (b *bench) openLocal(name string) (sdk.Store, error) {
	config, err := json.Marshal(map[string]any{"path": filepath.Join(b.scratch, name), "sync": false})
	if err != nil {
		return nil, err
	}
	all := plugins.All()
	stage := all[slices.IndexFunc(all, func(s sdk.Stage) bool { return s.Kind == sdk.KindStore && s.Name == "local" })]
	opened, err := stage.Open(b.ctx, sdk.Setup{}, config)
	if err != nil {
		return nil, err
	}
	store, ok := opened.(sdk.Store)
	if !ok {
		return nil, fmt.Errorf("%T is no store", opened)
	}
	return store, nil
}

// dense measures the exact vector search.
func (b *bench) dense() (c contender, err error) {
	texts, err := b.lines("texts.txt")
	if err != nil {
		return c, err
	}
	vectors, err := b.matrix("texts.f32")
	if err != nil {
		return c, err
	}
	asked, err := b.matrix("queries.f32")
	if err != nil {
		return c, err
	}
	store, err := b.openLocal("dense")
	if err != nil {
		return c, err
	}
	if err := b.collection(store, "", texts, nil, vectors); err != nil {
		return c, err
	}
	queries := make([]sdk.Query, len(asked))
	for i, v := range asked {
		queries[i].Vector = v
	}
	search := func(batch []sdk.Query) ([]sdk.Hits, error) {
		return store.Search(b.ctx, "c", sdk.Search{Mode: sdk.ModeDense, NumCandidates: nearest}, batch)
	}
	one := min(singles, len(queries))
	single, _, err := each(queries[:one], 1, search)
	if err != nil {
		return c, err
	}
	batch, _, err := each(queries, batchSize, search)
	if err != nil {
		return c, err
	}
	c.answers = map[string]any{"single": found(single, sdk.ModeDense), "batch": found(batch, sdk.ModeDense)}
	c.tasks = map[string]func() (reply, error){
		"single": timed(queries[:one], 1, search),
		"batch":  timed(queries, batchSize, search),
	}
	return c, nil
}

// bm25 measures the lexical search.
func (b *bench) bm25() (c contender, err error) {
	texts, err := b.lines("words.txt")
	if err != nil {
		return c, err
	}
	store, err := b.openLocal("bm25")
	if err != nil {
		return c, err
	}
	if err := b.collection(store, "standard", texts, nil, nil); err != nil {
		return c, err
	}
	search := func(batch []sdk.Query) ([]sdk.Hits, error) {
		return store.Search(b.ctx, "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: bestTexts}, batch)
	}
	answers := map[string]any{}
	c = contender{answers: answers, tasks: map[string]func() (reply, error){}}
	for _, words := range []string{"words3", "words16"} {
		asked, err := b.lines(words + ".txt")
		if err != nil {
			return c, err
		}
		queries := make([]sdk.Query, min(lexicalRun, len(asked)))
		for i := range queries {
			queries[i].Text = asked[i]
		}
		hits, _, err := each(queries, 1, search)
		if err != nil {
			return c, err
		}
		answers[words] = found(hits, sdk.ModeLexical)
		c.tasks[words] = timed(queries, 1, search)
	}
	return c, nil
}

// each searches for the queries, size at a time, and tells how long each call
// took per query, in milliseconds.
func each(queries []sdk.Query, size int, search func([]sdk.Query) ([]sdk.Hits, error)) (hits []sdk.Hits, took []float64, err error) {
	for batch := range slices.Chunk(queries, size) {
		start := time.Now()
		some, err := search(batch)
		took = append(took, milliseconds(start)/float64(len(batch)))
		if err != nil {
			return nil, nil, err
		}
		hits = append(hits, some...)
	}
	return hits, took, nil
}

// timed is the task of searching for the queries: the median of its calls.
func timed(queries []sdk.Query, size int, search func([]sdk.Query) ([]sdk.Hits, error)) func() (reply, error) {
	return func() (reply, error) {
		_, took, err := each(queries, size, search)
		if err != nil {
			return nil, err
		}
		slices.Sort(took)
		return reply{"n": float64(len(queries)), "ms": took[len(took)/2]}, nil
	}
}

// found is what each query found: numbers of texts with their scores.
func found(all []sdk.Hits, mode sdk.Mode) [][][2]float64 {
	rows := make([][][2]float64, len(all))
	for i, hits := range all {
		side, score := hits.Dense, func(h sdk.Hit) float32 { return h.Dense }
		if mode == sdk.ModeLexical {
			side, score = hits.Lexical, func(h sdk.Hit) float32 { return h.Lexical }
		}
		rows[i] = make([][2]float64, len(side))
		for j, hit := range side {
			number, _ := strconv.Atoi(hit.ID) // collection numbered them
			rows[i][j] = [2]float64{float64(number), float64(score(hit))}
		}
	}
	return rows
}
