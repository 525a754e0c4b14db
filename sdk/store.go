package sdk

import "context"

// Store keeps collections of entries and searches them. It returns what each
// side of a search found; the SDK fuses the sides (package fuse), so that
// every store ranks alike.
//
// What is written to a collection by Put and Delete becomes visible and
// durable all at once with Commit. A store that is closed or killed before
// that forgets it.
type Store interface {
	// Open makes a collection ready and tells what is in it; one that does
	// not exist is created. It drops what an earlier process left uncommitted.
	Open(ctx context.Context, collection string, schema Schema) (Collection, error)
	// Put adds entries, replacing those with the same id.
	Put(ctx context.Context, collection string, entries []Entry) error
	// Delete removes entries; unknown ids are ignored.
	Delete(ctx context.Context, collection string, ids []string) error
	// Commit makes all changes since the last Commit durable and visible,
	// together with a note of the engine's.
	Commit(ctx context.Context, collection string, note []byte) error
	// Search returns for each query the best entries of each side, best first.
	Search(ctx context.Context, collection string, s Search, queries []Query) ([]Hits, error)
	// Get returns the entries with the given ids, without vectors, in the
	// order of the ids. An unknown id gives an Entry with an empty ID.
	Get(ctx context.Context, collection string, ids []string) ([]Entry, error)
	// Scan walks through a collection in a stable order of the store's choice.
	Scan(ctx context.Context, collection string, s Scan) (Page, error)
}

// Schema is what a collection is made for.
type Schema struct {
	Dimension int    // of the vectors
	Analyzer  string // of the lexical side; empty: the collection has no lexical side
}

// Collection is the committed state of a collection.
type Collection struct {
	Entries   int
	Dimension int
	Note      []byte // of the last Commit
}

// Mode chooses the sides of a search.
type Mode string

// The search modes.
const (
	ModeHybrid  Mode = "hybrid"
	ModeDense   Mode = "dense"
	ModeLexical Mode = "lexical"
)

// Search says how to search.
type Search struct {
	Mode  Mode
	Depth int // entries wanted per side
}

// Query is what is searched for, and among what. Its vector is nil in a lexical
// search.
type Query struct {
	Text   string
	Vector []float32
	Filter *Filter // nil: among all entries; queries may share one
}

// Hits are the best entries of each side, best first; ties stand in the order
// of their ids. A side that was not asked is nil.
type Hits struct {
	Dense, Lexical []Hit
}

// Hit is an entry that one side found. A store that knows the other side's
// score too should give it; Unscored is the honest alternative.
type Hit struct {
	ID             string
	Dense, Lexical float32
	Entry          *Entry // nil: the SDK gets it by id if it is wanted
}

// Scan says which entries to return, and which parts of them. ID, Label and
// Hash are always there.
type Scan struct {
	After   string   // Page.Next of the page before; empty: from the start
	Limit   int      // most entries of a page; a store may end it earlier, to fit a message
	Labels  []string // only entries with one of these labels; none: all
	Texts   bool     // with Text, Context and Meta
	Vectors bool     // with Vector
}

// Page is a part of a collection.
type Page struct {
	Entries []Entry
	Next    string // empty: this was the last page
}

// Fusion says how the SDK makes one ranking of a search's sides; see package
// fuse for the formulas.
type Fusion struct {
	Method      string  // "weighted" or "rrf"
	DenseWeight float64 // weighted: the dense side's share, 0 to 1
	K           int     // rrf: the rank constant
}

// Ranking is a search, the fusion of its sides, and how much of it is wanted.
type Ranking struct {
	Search
	Fusion
	TopK  int
	Texts bool // candidates with Text, Context and Meta
}

// Retriever is a Store as the engine sees it: the sides come back fused.
type Retriever interface {
	// Retrieve returns for each query its candidates, best first.
	Retrieve(ctx context.Context, collection string, r Ranking, queries []Query) ([][]Candidate, error)
}
