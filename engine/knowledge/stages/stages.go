package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Starter starts the stages of a knowledge block.
type Starter interface {
	// Chunker starts the chunker of a block that has one.
	Chunker(ctx context.Context) (Chunker, error)
	// Enricher starts one of the enrich stages of a block.
	Enricher(ctx context.Context, s *pipeline.Stage) (Enricher, error)
	// Embedder starts the embedder with the state that it was fitted to, or nil, and
	// with what one before it has resolved (see Resolved), as if the file had given
	// that. An embedder started before by the same Starter is ended.
	Embedder(ctx context.Context, state []byte, resolved json.RawMessage) (Embedder, error)
	Store(ctx context.Context) (Store, error)
}

// Chunker is a chunk stage that runs.
type Chunker interface {
	sdk.Chunker
	Fingerprint() string
}

// Enricher is an enrich stage that runs.
type Enricher interface {
	sdk.Enricher
	Fingerprint() string
}

// Embedder is an embed stage that runs.
type Embedder interface {
	sdk.Embedder
	sdk.Fitter
	Fits() bool // whether Fit must come before Embed
	// State is what Fit has learnt, at most 64 KiB: it is committed with the vectors.
	State() ([]byte, error)
	Fingerprint() string
}

// Store is a store stage that runs.
type Store interface {
	Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error)
	Put(ctx context.Context, collection string, entries []sdk.Entry) error
	Delete(ctx context.Context, collection string, ids []string) error
	Commit(ctx context.Context, collection string, note []byte) error
	Get(ctx context.Context, collection string, ids []string) ([]sdk.Entry, error)
	Scan(ctx context.Context, collection string, s sdk.Scan) (sdk.Page, error)
	List(ctx context.Context) ([]sdk.Collection, error)
	Drop(ctx context.Context, collection string) error
	// Attach is that of sdk.Attacher. It is an error for a stage without sdk.Attaches.
	Attach(ctx context.Context) (sdk.Attached, error)
	sdk.Retriever
}

// Set is the running stages that make the entries of a block.
type Set struct {
	Chunker   Chunker         // nil: a row or document is one entry
	Enrichers []Enricher      // one for each of Block.Enrichers(); nil: it is not asked
	Embedder  Embedder        // nil: it was not started
	Resolved  json.RawMessage // of the embedder
}

// Resolved is what a stage has chosen for arguments that were left to it, by the
// processor, say: a JSON object, its keys sorted; nil: nothing.
func Resolved(stage any) (json.RawMessage, error) {
	r, ok := stage.(sdk.Resolver)
	if !ok || len(r.Resolved()) == 0 {
		return nil, nil
	}
	return json.Marshal(r.Resolved())
}

// Start starts all of them.
func Start(ctx context.Context, block *pipeline.Knowledge, starter Starter) (s Set, err error) {
	if s.Embedder, err = starter.Embedder(ctx, nil, nil); err == nil {
		s.Resolved, err = Resolved(s.Embedder)
	}
	if err == nil {
		err = s.start(ctx, block, starter, true)
	}
	return s, err
}

// StartLocal starts those that make texts without a service: the chunker, and the
// enrichers that call none.
func StartLocal(ctx context.Context, block *pipeline.Knowledge, starter Starter) (s Set, err error) {
	err = s.start(ctx, block, starter, false)
	return s, err
}

func (s *Set) start(ctx context.Context, block *pipeline.Knowledge, starter Starter, network bool) (err error) {
	if block.Chunk != nil {
		if s.Chunker, err = starter.Chunker(ctx); err != nil {
			return err
		}
	}
	for _, e := range block.Enrichers() {
		var process Enricher
		if network || !e.Info.Network {
			if process, err = starter.Enricher(ctx, e); err != nil {
				return err
			}
		}
		s.Enrichers = append(s.Enrichers, process)
	}
	return nil
}

// ScanPage is how many entries a page of a scan has at most.
const ScanPage = 4096

// Scan calls f with every entry of a collection that s asks for.
func Scan(ctx context.Context, store Store, collection string, s sdk.Scan, f func(sdk.Entry)) error {
	for page, err := range Pages(ctx, store, collection, s) {
		if err != nil {
			return err
		}
		for _, e := range page {
			f(e)
		}
	}
	return nil
}

// Pages yields the entries of a collection that s asks for, as many at a time as fit a
// message. An error is the last.
func Pages(ctx context.Context, store Store, collection string, s sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) {
		for s := s; ; {
			s.Limit = ScanPage
			page, err := store.Scan(ctx, collection, s)
			if err != nil {
				yield(nil, fmt.Errorf("scan: %w", err))
				return
			}
			if !yield(page.Entries, nil) || page.Next == "" {
				return
			}
			s.After = page.Next
		}
	}
}
