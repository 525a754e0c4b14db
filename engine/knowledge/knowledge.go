package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
)

// layout is part of every fingerprint: raise it when entries, notes or
// centroids are made in another way.
const layout = 1

// Embedder is an embed stage that runs.
type Embedder interface {
	sdk.Fitter
	Fits() bool // whether Fit must come before Embed
	Fingerprint() string
}

// Store is a store stage that runs.
type Store interface {
	Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error)
	Put(ctx context.Context, collection string, entries []sdk.Entry) error
	Delete(ctx context.Context, collection string, ids []string) error
	Commit(ctx context.Context, collection string, note []byte) error
	Scan(ctx context.Context, collection string, s sdk.Scan) (sdk.Page, error)
	List(ctx context.Context) ([]sdk.Collection, error)
	Drop(ctx context.Context, collection string) error
	sdk.Retriever
}

// Chunker is a chunk stage that runs.
type Chunker interface {
	sdk.Chunker
	Fingerprint() string
}

// Stages starts the stages of a knowledge block.
type Stages interface {
	// Chunker starts the chunker of a block that has one.
	Chunker(ctx context.Context) (Chunker, error)
	// Enricher starts one of the enrich stages of a block.
	Enricher(ctx context.Context, s *pipeline.Stage) (Enricher, error)
	// Embedder starts the embedder with the state that it was fitted to, or
	// nil. An embedder started before by the same Stages is ended.
	Embedder(ctx context.Context, state []byte) (Embedder, error)
	Store(ctx context.Context) (Store, error)
}

// Options are what Open needs beside the block and its stages.
type Options struct {
	Stdin io.Reader
	// Progress is told what is being done ("enriching", "embedding") and with how
	// many rows or documents; may be nil.
	Progress func(doing string, done, total int)
	Waiting  func(name string, why error) // told once when another process is building it; may be nil
	Plan     bool                         // only report what would be done
}

// Knowledge is a knowledge block that is ready to be searched.
type Knowledge struct {
	Labels []string // sorted
	Report Report   // of the Open that made it

	block     *pipeline.Knowledge
	chunker   Chunker // nil: a row or document is one entry
	enrichers []*enricher
	embedder  Embedder
	store     Store
	main      string // collection of the entries
	centroids string // collection of the label centroids
	content   string
	all       *entries
	embeds    Meter
	searches  Meter
}

// Generation names the collection that is searched, and the hash of what its
// entries were made from.
func (k *Knowledge) Generation() (collection, content string) { return k.main, k.content }

// Meter counts the work of a stage.
type Meter struct{ rows, busy atomic.Int64 }

func (m *Meter) add(rows int, start time.Time) {
	m.rows.Add(int64(rows))
	m.busy.Add(int64(time.Since(start)))
}

// Read returns the rows so far and the time of the calls that they took; calls
// that overlap count each.
func (m *Meter) Read() (rows int, busy time.Duration) {
	return int(m.rows.Load()), time.Duration(m.busy.Load())
}

// Meters returns the work done for queries: embedding and searching.
func (k *Knowledge) Meters() (embeds, searches *Meter) { return &k.embeds, &k.searches }

// Report says what Open found and did.
type Report struct {
	Name                    string
	Documents               int // that the entries are made of; 0: they are rows
	Entries                 int
	Added, Changed, Removed int
	Unchanged               bool // the source is as it was: no row was looked at
	Faults                  []Fault
	FaultCount              int // Faults keeps the first maxFaults only
	Bare                    int // passages that are kept without an addition that they should have
	FirstBare               Fault
	Asks                    []Asks // of a plan: what services would be asked, at most
	Embedder, Store         string
	Retired                 []Generation // removed: this build replaces them
	Kept                    []error      // why others that it replaces could not be removed
}

// Fault is a row or document of the source that cannot be used.
type Fault struct {
	Path string
	Line int // 0: a document as a whole
	Err  error
}

func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %v", f.Path, f.Err)
	}
	return fmt.Sprintf("%s:%d: %v", f.Path, f.Line, f.Err)
}

// SourceError says that a source block names something that cannot be read.
type SourceError struct {
	Range hcl.Range // of the source block
	Err   error
}

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

const maxFaults = 1000

// Open brings the store in step with the source and returns the knowledge,
// ready to be searched. Rows that cannot be used are in the report; an error
// means that there is nothing to search.
func Open(ctx context.Context, block *pipeline.Knowledge, stages Stages, o Options) (*Knowledge, error) {
	embedder, err := stages.Embedder(ctx, nil)
	if err != nil {
		return nil, err
	}
	store, err := stages.Store(ctx)
	if err != nil {
		return nil, err
	}
	var chunker Chunker
	if block.Chunk != nil {
		if chunker, err = stages.Chunker(ctx); err != nil {
			return nil, err
		}
	}
	enrichers, err := startEnrichers(ctx, block, stages, anyStage)
	if err != nil {
		return nil, err
	}
	// Before anything is learnt: what has learnt has a fingerprint of its own.
	name := collectionName(block, chunker, enrichers, embedder)
	if o.Plan {
		for _, e := range enrichers {
			e.process = nil
		}
	}
	var source *rows
	for try := 1; ; try++ {
		k := &Knowledge{block: block, chunker: chunker, enrichers: enrichers, embedder: embedder, store: store, all: new(entries)}
		k.Report = Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		k.main = name
		k.centroids = labelsOf(k.main)
		b := builder{Knowledge: k, stages: stages, options: o, rows: source}
		err := b.build(ctx)
		var busy *busyError
		if err == nil {
			k.content = b.content()
			if b.completed {
				k.retire(ctx)
			}
			return k, nil
		}
		if !errors.As(err, &busy) || !busy.locked && try == maxTries {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
		if try == 1 && o.Waiting != nil {
			o.Waiting(block.Name, busy.err)
		}
		// Where another process builds the same knowledge, little or nothing is
		// left to do once it is done; where the store's process ended, what it
		// had committed is still there.
		embedder, source = b.embedder, b.rows
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// maxTries is how often a build starts over that was not kept out by another
// one.
const maxTries = 10

// retryAfter is how long a builder waits for another one before it looks
// again.
const retryAfter = 300 * time.Millisecond

// busyError says that the store cannot be written to at the moment.
type busyError struct {
	err    error
	locked bool // by another process, which it names
}

func (e *busyError) Error() string { return e.err.Error() }
func (e *busyError) Unwrap() error { return e.err }

// written wraps the error of a write to the store.
func written(what string, err error) error {
	if err == nil {
		return nil
	}
	if coded := new(sdk.Error); errors.As(err, &coded) && coded.Code == sdk.CodeTransient {
		return &busyError{err, coded.RetryAfter > 0}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// collectionName names a collection after all that its content depends on,
// the rows themselves aside: not keys, timeouts, or how much is asked at a time. Another source file is another collection: two
// runs over two files must not remove each other's rows.
func collectionName(block *pipeline.Knowledge, c Chunker, enrichers []*enricher, e Embedder) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	s := block.Source
	parts := []any{
		layout, s.Path, s.Format, s.ID, s.Text, s.Label, s.Meta,
		block.Embed.Use, block.Embed.Config.Identity, e.Fingerprint(), e.Dimension(), block.Analyzer,
	}
	if s.Context != "" { // a knowledge without one keeps the name that it always had
		parts = append(parts, s.Context)
	}
	if d := s.Documents; d != nil {
		parts = append(parts, document.Version, d.Exclude, d.Max)
	}
	if c != nil {
		parts = append(parts, "chunk", block.Chunk.Use, block.Chunk.Config.Identity, c.Fingerprint())
	}
	for i, made := range enrichments(block) {
		made.Config = enrichers[i].stage.Config.Identity
		parts = append(parts, "enrich", made, enrichers[i].process.Fingerprint())
	}
	for _, part := range parts {
		if err := enc.Encode(part); err != nil {
			panic(err) // strings, numbers and checked JSON always encode
		}
	}
	return block.Name + "-" + hex.EncodeToString(h.Sum(nil))[:hashLength]
}

// hashLength is the number of hexadecimal digits in a collection's name.
const hashLength = 12

// labelsOf names the collection of the label centroids that belong to one of
// entries.
func labelsOf(collection string) string { return collection + "-labels" }

// Retrieve embeds the texts of the queries where the ranking has a dense side,
// and searches. It returns the queries' vectors, too, so that they need not be
// made twice; they are nil in a lexical search. With sdk.RowErrors, where single
// queries failed, the others' candidates stand.
func (k *Knowledge) Retrieve(ctx context.Context, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, [][]float32, error) {
	var vectors [][]float32
	if r.Mode != sdk.ModeLexical {
		texts := make([]string, len(queries))
		for i, q := range queries {
			texts[i] = q.Text
		}
		var err error
		if vectors, err = k.Embed(ctx, texts); err != nil {
			return nil, nil, err
		}
		queries = slices.Clone(queries)
		for i := range queries {
			queries[i].Vector = vectors[i]
		}
	}
	defer k.searches.add(len(queries), time.Now())
	candidates, err := k.store.Retrieve(ctx, k.main, r, queries)
	if err != nil {
		err = fmt.Errorf("search: %w", err)
	}
	return candidates, vectors, err
}

// Prototypes returns for each vector the nearest label centroids, at most
// limit, nearest first: Label and Dense are set.
func (k *Knowledge) Prototypes(ctx context.Context, vectors [][]float32, limit int) ([][]sdk.Candidate, error) {
	if len(k.Labels) == 0 {
		return make([][]sdk.Candidate, len(vectors)), nil
	}
	queries := make([]sdk.Query, len(vectors))
	for i, v := range vectors {
		queries[i].Vector = v
	}
	n := min(limit, len(k.Labels))
	defer k.searches.add(0, time.Now()) // these rows were searched for before
	return k.store.Retrieve(ctx, k.centroids, nearest(n), queries)
}

// Embed embeds texts as queries.
func (k *Knowledge) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	defer k.embeds.add(len(texts), time.Now())
	vectors, err := k.embedder.Embed(ctx, sdk.RoleQuery, texts)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	return vectors, nil
}

// nearest ranks by cosine alone.
func nearest(n int) sdk.Ranking {
	return sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, Depth: n}, Fusion: sdk.Fusion{Method: fuse.Weighted, DenseWeight: 1}, TopK: n}
}
