package knowledge

import (
	"context"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

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
