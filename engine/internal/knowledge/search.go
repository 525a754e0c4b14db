package knowledge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// together is how many entries one call reads. They fit in a message even with the longest texts that a
// store accepts.
const together = 256

// Get returns the entries with the given ids as unscored candidates, in the order of the ids. A
// removed entry has an empty ID.
func (k *Knowledge) Get(ctx context.Context, ids []string) ([]sdk.Candidate, error) {
	all := make([]sdk.Candidate, 0, len(ids))
	for part := range slices.Chunk(ids, together) {
		entries, err := k.store.Get(ctx, k.entries, part)
		if err != nil {
			return nil, fmt.Errorf("read entries of knowledge %q: %w", k.block.Name, err)
		}
		for _, e := range entries {
			all = append(all, candidate(e))
		}
	}
	return all, nil
}

func candidate(e sdk.Entry) sdk.Candidate {
	return sdk.Candidate{ID: e.ID, Text: e.Text, Label: e.Label, Context: e.Context, Meta: e.Meta, Dense: sdk.Unscored, Lexical: sdk.Unscored}
}

// LabelForm describes how the labels are written.
func (k *Knowledge) LabelForm() sdk.LabelForm { return k.block.LabelForm() }

// ReadLabels returns the labels of the entries, sorted, by walking through the store.
func (k *Knowledge) ReadLabels(ctx context.Context) ([]string, error) {
	labels := map[string]bool{}
	err := k.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) {
		for _, label := range k.block.LabelForm().Split(e.Label) {
			labels[label] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the labels of knowledge %q: %w", k.block.Name, err)
	}
	return slices.Sorted(maps.Keys(labels)), nil
}

// Retrieve embeds the texts of the queries if the ranking has a dense leg, and searches. It also returns
// the queries' vectors, so that nobody embeds them twice; they are nil in a lexical search. With
// sdk.RowErrors, single queries failed; the candidates and vectors of the others are valid.
func (k *Knowledge) Retrieve(ctx context.Context, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, [][]float32, error) {
	var vectors [][]float32
	failed := sdk.RowErrors{}
	if r.Mode = k.mode(r.Mode); r.Mode != sdk.ModeLexical {
		var err error
		if vectors, err = k.VectorsOf(ctx, queries); TakeRows(failed, err) != nil {
			return nil, nil, err
		}
	}
	var at []int
	var asked []sdk.Query
	for i, q := range queries {
		if failed[i] == nil {
			if q.Vector = nil; vectors != nil { // with a vector, hits of a lexical search would have cosines
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

// TakeRows moves the errors of single rows from err to failed. It returns any other error.
func TakeRows(failed sdk.RowErrors, err error) error {
	var rows sdk.RowErrors
	if err == nil || !errors.As(err, &rows) {
		return err
	}
	maps.Copy(failed, rows)
	return nil
}

// Prototypes returns the nearest label centroids of each vector, at most limit, nearest first, with Label
// and Dense.
func (k *Knowledge) Prototypes(ctx context.Context, vectors [][]float32, limit int) ([][]sdk.Candidate, error) {
	if len(k.Labels) == 0 {
		return make([][]sdk.Candidate, len(vectors)), nil
	}
	return k.backing.Nearest(ctx, vectors, min(limit, len(k.Labels)))
}

// search asks the store. fresh is how many of the queries the meter counts.
func (k *Knowledge) search(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query, fresh int) ([][]sdk.Candidate, error) {
	defer k.searches.add(fresh, time.Now())
	ctx, done := k.call(ctx, k.block.Store, fresh)
	if k.attached != nil {
		r.Norm = k.attached.Norm()
	}
	found, err := k.store.Retrieve(ctx, collection, r, queries)
	done(progress.CallEnded(err))
	return found, err
}

// call reports to the observer that the embedder or the store is called; the returned function reports
// how the call ended.
func (k *Knowledge) call(ctx context.Context, s *pipeline.Stage, rows int) (context.Context, func(progress.CallDone)) {
	if k.observe == nil {
		return ctx, func(progress.CallDone) {}
	}
	return k.observe.Call(ctx, progress.StageCall{
		Pipeline: k.pipeline, Stage: string(s.Kind) + "." + k.block.Name, Use: s.Use, Model: s.Config.Model(), Kind: s.Kind, Rows: rows,
	})
}

// nearest returns a ranking by cosine alone.
func nearest(n int) sdk.Ranking {
	return sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: n}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 1}, TopK: n}
}

// Nearest returns the vectors of texts, and the nearest entry of each. A text that cannot be embedded has
// no vector and no entry. If the knowledge is empty, no text has an entry.
func (k *Knowledge) Nearest(ctx context.Context, texts []string) (vectors [][]float32, entries []sdk.Candidate, err error) {
	one := nearest(1)
	one.Texts = true
	entries = make([]sdk.Candidate, 0, len(texts))
	for part := range slices.Chunk(texts, together) {
		queries := make([]sdk.Query, len(part))
		for i, text := range part {
			queries[i].Text = text
		}
		found, embedded, err := k.Retrieve(ctx, one, queries)
		if err := TakeRows(sdk.RowErrors{}, err); err != nil {
			return nil, nil, err
		}
		vectors = append(vectors, embedded...)
		for _, f := range found {
			entries = append(entries, append(f, sdk.Candidate{})[0])
		}
	}
	return vectors, entries, nil
}

// VectorsOf returns the vectors of queries. If the queries have no vectors, it embeds their texts and
// returns errors as Embed does. Either all queries have vectors, or none has.
func (k *Knowledge) VectorsOf(ctx context.Context, queries []sdk.Query) ([][]float32, error) {
	texts, vectors := make([]string, len(queries)), make([][]float32, len(queries))
	for i, q := range queries {
		texts[i], vectors[i] = q.Text, q.Vector
	}
	if len(queries) > 0 && vectors[0] != nil {
		return vectors, nil
	}
	return k.Embed(ctx, texts)
}

// Embeds reports whether the knowledge has an embedder, which is optional for a collection of another
// program.
func (k *Knowledge) Embeds() bool { return k.embedder != nil }

// Embed embeds texts as queries. With sdk.RowErrors, single texts failed; the vectors of the others
// are valid.
func (k *Knowledge) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	defer k.embeds.add(len(texts), time.Now())
	ctx, done := k.call(ctx, k.block.Embed, len(texts))
	var vectors [][]float32
	err := retry.PendingWork{Call: func(ctx context.Context, _ string, _ []int) (err error) { // an item does not wait for a batch
		vectors, err = k.embedder.Embed(ctx, sdk.RoleQuery, texts)
		return err
	}}.Do(ctx, nil)
	done(progress.CallEnded(err))
	failed := sdk.RowErrors{}
	if err := TakeRows(failed, err); err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(failed) == 0 {
		return vectors, nil
	}
	for i := range failed {
		vectors[i] = nil // keeps it out of the search
	}
	return vectors, failed
}

// Meter counts the rows and the time of a stage.
type Meter struct{ rows, busy atomic.Int64 }

// Begin starts the work for a pipeline's items. It resets the meters, which have counted the learning of
// stages. o observes calls; o may be nil.
func (k *Knowledge) Begin(pipeline string, o progress.CallObserver) {
	k.pipeline, k.observe = pipeline, o
	for _, m := range []*Meter{&k.embeds, &k.searches} {
		m.rows.Store(0)
		m.busy.Store(0)
	}
}

// Meters returns the meters of the work for queries: embedding and searching.
func (k *Knowledge) Meters() (embeds, searches *Meter) { return &k.embeds, &k.searches }

func (m *Meter) add(rows int, start time.Time) {
	m.rows.Add(int64(rows))
	m.busy.Add(int64(time.Since(start)))
}

// Read returns the rows so far and the total time of their calls; calls that overlap count in full.
func (m *Meter) Read() (rows int, busy time.Duration) {
	return int(m.rows.Load()), time.Duration(m.busy.Load())
}

// Stand identifies an index version at the time when a search of it began.
type Stand struct {
	Collection string
	Content    string // hash of what its entries were made from
}

// stand opens an index version as it is, for a part of a run whose knowledge another process has built. It
// does not need the source. It reuses the state that the embedder learned and the values that it resolved.
func stand(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, s Stand) (*Knowledge, error) {
	k, err := reopened(ctx, block, starter, s)
	if err != nil {
		return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
	}
	return k, nil
}

func reopened(ctx context.Context, block *pipeline.Knowledge, starter generation.Starter, s Stand) (*Knowledge, error) {
	store, err := starter.Store(ctx)
	if err != nil {
		return nil, err
	}
	_, note, err := find(ctx, store, s)
	if err != nil {
		return nil, err
	}
	embedder, err := starter.Embedder(ctx, note.State, note.Resolved)
	if err != nil {
		return nil, err
	}
	schema := sdk.Schema{Dimension: embedder.Dimension(), Analyzer: block.Analyzer}
	have, err := store.Open(ctx, s.Collection, schema)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	centroids := generation.Centroids(s.Collection)
	if state, err := store.Open(ctx, centroids, sdk.Schema{Dimension: schema.Dimension}); err != nil {
		return nil, fmt.Errorf("open centroids: %w", err)
	} else if string(state.Note) != note.Source {
		return nil, errors.New("its centroids are not those of its entries: another build is at work on it")
	}
	k := &Knowledge{block: block, embedder: embedder}
	if err := generation.Scan(ctx, store, centroids, sdk.Scan{Texts: block.Described() != nil}, func(e sdk.Entry) {
		k.Labels = append(k.Labels, e.Label)
		k.describe(e)
	}); err != nil {
		return nil, err
	}
	slices.Sort(k.Labels)
	k.Report = BuildReport{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use, Entries: have.Entries, Documents: note.Documents, Unchanged: true}
	return k.serving(store, s.Collection, s.Content, schema.Dimension), nil
}

// Embedder returns a digest of what determines the running embedder's vectors: its arguments and other
// dependencies. It ignores paths of files.
func (k *Knowledge) Embedder() string {
	if k.embedder == nil {
		return ""
	}
	return pipeline.OutputDigest(k.embedder)
}
