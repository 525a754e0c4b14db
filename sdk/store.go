package sdk

import "context"

// Store keeps collections of entries and searches them. It returns what each
// leg of a search found; the SDK fuses the legs (package fuse), so that
// every store ranks alike.
//
// What is written to a collection by Put and Delete becomes visible and
// durable all at once with Commit: a reader always finds the state of one
// Commit. Changes that are not committed are lost when the store is closed or killed.
// Several processes may have a collection open. Of two that change it at once, or one after the other
// without opening it again, one may be refused, by Put, Delete or Commit and with a transient error;
// what was committed stays.
//
// Any non-empty name may be that of a collection. All strings may be any valid
// UTF-8, NUL included. Ids have 1 to 512 bytes, labels up to 512, texts and
// contexts up to 60,000; a store may refuse longer ones, with an error made by
// Invalid, and then changes nothing, not even uncommitted changes. Unless stated otherwise,
// methods but Open refuse a collection that this process has not opened.
type Store interface {
	// Open makes a collection ready and returns its state; one that does
	// not exist is created. It drops uncommitted changes of earlier
	// processes and of this one. A collection that was made with another schema is
	// refused.
	Open(ctx context.Context, collection string, schema Schema) (Collection, error)
	// Put adds entries, replacing those with the same id; of several with one id
	// the last counts. A batch is refused as a whole for an entry without an id,
	// with a vector of another dimension, or with NaN or an infinity in it. Entries
	// that are too long for the store fail alone, with RowErrors; the others are put.
	Put(ctx context.Context, collection string, entries []Entry) error
	// Delete removes entries; unknown ids are ignored.
	Delete(ctx context.Context, collection string, ids []string) error
	// Commit makes all changes since the last Commit durable and visible,
	// together with a note of the engine's. There may be none.
	Commit(ctx context.Context, collection string, note []byte) error
	// Search returns for each query the best entries of each leg, best first;
	// see Hits. A query that cannot be searched, for its vector, fails alone.
	Search(ctx context.Context, collection string, s Search, queries []Query) ([]Hits, error)
	// Get returns the entries with the given ids, without vectors, in the
	// order of the ids, each as often as its id is there. An unknown id gives an
	// Entry with an empty ID.
	Get(ctx context.Context, collection string, ids []string) ([]Entry, error)
	// Scan walks through a collection in a stable order of the store's choice. An
	// entry that is neither put nor deleted meanwhile is in exactly one page,
	// whatever is committed between two pages.
	Scan(ctx context.Context, collection string, s Scan) (Page, error)
	// List returns the collections of this store, opened or not, by name. Those that cannot be read are left out.
	List(ctx context.Context) ([]Collection, error)
	// Drop removes a collection and all that is in it, at once. It need not be
	// open; one that does not exist is no error, and one that another process
	// writes is not dropped (a transient error).
	Drop(ctx context.Context, collection string) error
}

// Schema is what a collection is made for.
type Schema struct {
	Dimension int    // of the vectors
	Analyzer  string // of the lexical leg; empty: the collection has no lexical leg
}

// Collection is the committed state of a collection.
type Collection struct {
	Name      string // as in List; Open may leave it out
	Entries   int
	Dimension int
	Note      []byte // of the last Commit
}

// Mode chooses the legs of a search.
type Mode string

// The search modes.
const (
	ModeHybrid  Mode = "hybrid"
	ModeDense   Mode = "dense"
	ModeLexical Mode = "lexical"
)

// Search says how to search.
type Search struct {
	Mode          Mode
	NumCandidates int  // entries that each leg, dense and lexical, finds
	Texts         bool // with Text, Context and Meta of what is found; else ID and Label are enough
	// Norm is the mean norm of an attached collection's vectors in the engine's sample, where one of them is
	// not 1; 0: all are, or nobody looked. Scores of a metric that depends on norms are then no cosines.
	Norm float64
}

// Query is one query of a search. Its vector is nil in a lexical search.
type Query struct {
	Text   string
	Vector []float32
	Filter *Filter // nil: among all entries; queries may share one
}

// Hits are the best entries of each leg, best first; ties stand in the order
// of the bytes of their ids. A leg that was not asked is nil.
//
// The dense score is the cosine of the vectors, 0 where the entry's is all zero.
// A query's vector that is all zero finds nothing.
//
// The lexical score is BM25 as in Lucene, with exact lengths, over the words that
// the schema's analyzer (package analyze) finds in the context and in the text:
//
//	sum over the query's words of  idf * tf / (tf + k1*(1 - b + b*length/average))
//	idf = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// A word that a query has twice counts twice. N, df and the average length are
// those of all committed entries, whatever a filter selects; k1 is 1.2 and b 0.75
// unless configured. An entry that has none of the words is not found.
type Hits struct {
	Dense, Lexical []Hit
}

// Hit is an entry that one leg found. A store that knows the other leg's
// score too should set it, and otherwise Unscored.
type Hit struct {
	ID             string
	Dense, Lexical float32
	Entry          *Entry // as much of it as Search.Texts asks for; nil: the SDK gets it by id
}

// Scan says which entries to return, and which parts of them. ID, Label and
// Hash are always there.
type Scan struct {
	After   string   // Page.Next of the page before; empty: from the start
	Limit   int      // most entries of a page, 0: no limit; a store ends it earlier to fit a message
	Labels  []string // only entries with one of these labels; none: all
	Texts   bool     // with Text, Context and Meta
	Vectors bool     // with Vector, of which only the direction is kept
}

// Page is a part of a collection.
type Page struct {
	Entries []Entry
	Next    string // empty: this was the last page
}

// Fusion says how the SDK makes one ranking of a search's legs; see package
// fuse for the formulas.
type Fusion struct {
	Method      string  // "weighted" or "rrf"
	DenseWeight float64 // weighted: the dense leg's share, 0 to 1
	K           int     // rrf: the rank constant
}

// Ranking is a search, the fusion of its legs, and the length of the result.
type Ranking struct {
	Search
	Fusion
	TopK int
}

// Retriever is a Store as the engine sees it: the legs come back fused.
type Retriever interface {
	// Retrieve returns for each query its candidates, best first.
	Retrieve(ctx context.Context, collection string, r Ranking, queries []Query) ([][]Candidate, error)
}
