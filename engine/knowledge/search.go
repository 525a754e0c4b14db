package knowledge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Retrieve embeds the texts of the queries where the ranking has a dense leg,
// and searches. It returns the queries' vectors, too, so that they need not be
// made twice; they are nil in a lexical search. With sdk.RowErrors, where single
// queries failed, the others' candidates and vectors stand.
func (k *Knowledge) Retrieve(ctx context.Context, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, [][]float32, error) {
	var vectors [][]float32
	failed := sdk.RowErrors{}
	if r.Mode = k.mode(r.Mode); r.Mode != sdk.ModeLexical {
		texts := make([]string, len(queries))
		for i, q := range queries {
			texts[i] = q.Text
		}
		var err error
		if vectors, err = k.Embed(ctx, texts); TakeRows(failed, err) != nil {
			return nil, nil, err
		}
	}
	var at []int
	var asked []sdk.Query
	for i, q := range queries {
		if failed[i] == nil {
			if vectors != nil {
				q.Vector = vectors[i]
			}
			at, asked = append(at, i), append(asked, q)
		}
	}
	found, err := k.search(ctx, k.entries, r, asked, len(asked))
	missed := sdk.RowErrors{}
	if err := TakeRows(missed, err); err != nil {
		return nil, nil, fmt.Errorf("search: %w", err)
	}
	candidates := make([][]sdk.Candidate, len(queries))
	for i, n := range at {
		if candidates[n] = found[i]; missed[i] != nil {
			failed[n] = missed[i]
		}
	}
	if len(failed) > 0 {
		return candidates, vectors, failed
	}
	return candidates, vectors, nil
}

// TakeRows moves the errors of single rows from err to failed. It returns any other
// error.
func TakeRows(failed sdk.RowErrors, err error) error {
	var rows sdk.RowErrors
	if err == nil || !errors.As(err, &rows) {
		return err
	}
	maps.Copy(failed, rows)
	return nil
}

// Prototypes returns for each vector the nearest label centroids, at most
// limit, nearest first: Label and Dense are set.
func (k *Knowledge) Prototypes(ctx context.Context, vectors [][]float32, limit int) ([][]sdk.Candidate, error) {
	if len(k.Labels) == 0 {
		return make([][]sdk.Candidate, len(vectors)), nil
	}
	return k.backing.Nearest(ctx, vectors, min(limit, len(k.Labels)))
}

// search asks the store. fresh is how many of the queries count as rows.
func (k *Knowledge) search(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query, fresh int) ([][]sdk.Candidate, error) {
	defer k.searches.add(fresh, time.Now())
	ctx, done := k.call(ctx, k.block.Store, fresh)
	if k.attached != nil {
		r.Norm = k.attached.Norm()
	}
	found, err := k.store.Retrieve(ctx, collection, r, queries)
	done(observe.Ended(err))
	return found, err
}

// call tells the observer of a call of the embedder or the store.
func (k *Knowledge) call(ctx context.Context, s *pipeline.Stage, rows int) (context.Context, func(observe.Done)) {
	return observe.Or(k.observe).Call(ctx, observe.Call{
		Pipeline: k.pipeline, Stage: string(s.Kind) + "." + k.block.Name, Use: s.Use, Model: s.Config.Model(), Kind: s.Kind, Rows: rows,
	})
}

// nearest ranks by cosine alone.
func nearest(n int) sdk.Ranking {
	return sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: n}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 1}, TopK: n}
}

// Embed embeds texts as queries. With sdk.RowErrors, where single texts failed,
// the others' vectors stand.
func (k *Knowledge) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	defer k.embeds.add(len(texts), time.Now())
	ctx, done := k.call(ctx, k.block.Embed, len(texts))
	var vectors [][]float32
	err := pending.Work{Call: func(ctx context.Context, _ []int) (err error) { // an item does not wait for a batch
		vectors, err = k.embedder.Embed(ctx, sdk.RoleQuery, texts)
		return err
	}}.Do(ctx, nil)
	done(observe.Ended(err))
	failed := sdk.RowErrors{}
	if err := TakeRows(failed, err); err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(failed) == 0 {
		return vectors, nil
	}
	for i := range failed {
		vectors[i] = nil // it is not to spoil a search
	}
	return vectors, failed
}

// Meter counts the work of a stage.
type Meter struct{ rows, busy atomic.Int64 }

// Begin says that work is for the items of a pipeline from now on. The meters forget what was
// done for stages to learn, and o hears of calls; nil: nobody listens.
func (k *Knowledge) Begin(pipeline string, o observe.Observer) {
	k.pipeline, k.observe = pipeline, o
	for _, m := range []*Meter{&k.embeds, &k.searches} {
		m.rows.Store(0)
		m.busy.Store(0)
	}
}

// Meters returns the work done for queries: embedding and searching.
func (k *Knowledge) Meters() (embeds, searches *Meter) { return &k.embeds, &k.searches }

func (m *Meter) add(rows int, start time.Time) {
	m.rows.Add(int64(rows))
	m.busy.Add(int64(time.Since(start)))
}

// Read returns the rows so far and the time of the calls that they took; calls
// that overlap count each.
func (m *Meter) Read() (rows int, busy time.Duration) {
	return int(m.rows.Load()), time.Duration(m.busy.Load())
}
