package sdk

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Attaches declares that a store can serve a collection that another program makes: where its
// string argument of that name is given, and not empty, what it opens is an Attacher. The
// knowledge of a pipeline file then needs no source; of any other store it is refused without one.
func Attaches(argument string) Option { return func(s *Stage) { s.Attaches = argument } }

// Attacher is a Store that serves a collection that another program makes, to be read: an
// attached collection. What Store promises of Search, Get and Scan holds for it, with these
// differences:
//
//   - An Entry has no Hash. Keys that are not strings are ids as text, such as "17".
//   - A row that can be no entry, since it has no id, is left out.
//   - Hits.Dense has the cosine, whatever the server measures by. Where the server's metric depends on
//     the lengths of vectors, it may choose other entries than those with the best cosines. The first rows
//     do not show the lengths of all: Search.Norm is from many more.
//   - Hits.Lexical has the server's own score, greater for better. Where Attached.Lexical is
//     false, it is nil in a hybrid search, and a lexical search is refused.
//   - Rows that the owner writes meanwhile show when the server shows them.
type Attacher interface {
	Store
	// Attach opens the collection that the config names and says what it found there. It writes
	// nothing, there or anywhere. Search, Get and Scan take Attached.Name from then on, and
	// refuse it before; Put, Delete, Commit and Drop refuse it with an error made by Invalid.
	// Attach may be called again, also while searches run, to look for changes: searches that
	// begin afterwards get what it found. Where it returns another Name, those that it returned
	// before are served on. An error says what the owner of the collection, or of
	// the file, can do about it; an ArgumentError points at the argument in the file.
	Attach(ctx context.Context) (Attached, error)
}

// Attached is what an Attacher found: a collection that another program makes.
type Attached struct {
	Name string // by which Search, Get and Scan know it
	// ID is that of what stands behind the name: another one after the swap of an alias, or where the
	// collection was made anew under its name. The rows may change under one ID.
	ID        string
	Entries   int  // as the server counts, deleted ones perhaps included
	Dimension int  // of the vectors
	Lexical   bool // it can be searched by words; else a hybrid search is dense, and a lexical one is refused
	Labels    bool // entries have labels
	Fields    []AttachedField
	Notes     []string // what it goes without and why, and how scores are read, for people: a sentence each
}

// AttachedField says where a part of the entries comes from, for people.
type AttachedField struct {
	Part  string `json:"part"`  // "id", "text", "label", "context", "vector", "meta", or "sparse", by which words are searched
	Field string `json:"field"` // of the collection
	Why   string `json:"why"`   // "named in the file", "the only vector field"
}

// Forecaster is a Sampler that knows what an item would cost without calling a service. The
// engine asks built-in stages, which it opens in its own process for that, with a Host that
// permits no call; for others it knows no bound.
type Forecaster interface {
	Forecast(item Item) (Forecast, error)
}

// EnrichForecaster is the same for an Enricher, and all passages of a document.
type EnrichForecaster interface {
	ForecastPassages(passages []Passage) (Forecast, error)
}

// Forecast is what it costs to ask about an item once. What the response cache of the Host
// has costs nothing.
type Forecast struct {
	Cached  int // answers that are in the response cache
	Answers int // the others, that are asked for

	Requests int // for these, if the service gives as many answers as a request asks for
	// Likely is what they are expected to take, with the CachedTokens that earlier runs had of such
	// requests.
	Likely Usage
	// Low and High are the range of Likely.OutputTokens: wide if the model thinks before it answers.
	Low, High uint64

	MostRequests int // if each gives one answer
	// Most is what all requests take at most whose answers arrive.
	Most    Usage
	Unknown string // why Most is unknown, and what to do about that; empty: it is known
}

// Add adds the forecast of another item.
func (f *Forecast) Add(o Forecast) {
	f.Cached += o.Cached
	f.Answers += o.Answers
	f.Requests += o.Requests
	f.MostRequests += o.MostRequests
	f.Likely.Add(o.Likely)
	f.Low, f.High = f.Low+o.Low, f.High+o.High
	f.Most.Add(o.Most)
	if o.Unknown != "" {
		f.Unknown = o.Unknown
	}
}

// CharactersPerToken is about what English text has with the tokenizers of today's
// models. Other languages have fewer characters to a token.
const CharactersPerToken = 4

// EstimateTokens estimates the tokens of so many characters, rounded up.
func EstimateTokens(characters int) int {
	return (characters + CharactersPerToken - 1) / CharactersPerToken
}

// Kind says what a stage does, and so which interface it implements.
type Kind string

// The kinds of stages. A kind's name is its block's name in the file, except
// that a store is named inside a knowledge block and searched by retrieve.
const (
	KindChunk  Kind = "chunk"
	KindEnrich Kind = "enrich"
	KindEmbed  Kind = "embed"
	KindStore  Kind = "store"
	KindRerank Kind = "rerank"
	KindPrompt Kind = "prompt"
	KindSample Kind = "sample"
	KindElect  Kind = "elect"
)

// Every method below works on a whole batch and returns one result per row, in
// order. To fail single rows, return the results together with RowErrors; any
// other error fails the batch. The engine fails a row whose result has a number
// that is not finite or out of its bounds. Methods may be called by several goroutines at
// once. A stage that also implements io.Closer is closed before its process
// ends, and one that implements Fingerprinter identifies what its output depends on.

// Chunker cuts documents into chunks.
type Chunker interface {
	// Chunk returns the chunks of each document in the order of Start. None is
	// empty, all begin and end between characters, and they may overlap.
	// Together they have every byte that is not white space, so that their spans
	// give the document back. A document of white space alone has none.
	Chunk(ctx context.Context, documents []Document) ([][]Chunk, error)
}

// Enricher finds what is worth knowing of a passage beyond its own words.
type Enricher interface {
	// Enrich returns an addition per passage. Documents come whole: all passages
	// of one stand together, in their order. A passage that fails alone is stored
	// without an addition; where the same build comes by its document again, it is
	// left out. Of a document that ends the process or hangs, the passages come in
	// parts, until the one to blame is found.
	Enrich(ctx context.Context, passages []Passage) ([]Addition, error)
}

// Role says what a text is to an embedding model that tells the two apart.
type Role uint8

// The roles of a text.
const (
	RolePassage Role = iota + 1 // it will be stored and found
	RoleQuery                   // it searches
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Dimension is the length of the vectors.
	Dimension() int
	// Embed returns a vector of that length for each text, of norm 1 unless
	// the text has nothing to embed (then all zero).
	Embed(ctx context.Context, role Role, texts []string) ([][]float32, error)
}

// Fitter is what an Embedder, Sampler, Reranker or Elector can be as well: it learns
// from the knowledge before it does anything else. Its Stage is made with Fits.
type Fitter interface {
	// Fit learns from rows, which come once and in batches; an error among them ends it. It
	// writes what it learnt into Setup.StateDir, in the place of what an earlier Fit
	// has written there, and works by it from then on. A later process with the same
	// folder reads it when it opens, and is not fitted again. An embedder's
	// files have at most 64 KiB together: they are stored with the vectors. It is fitted
	// again once the knowledge has grown or shrunk by a fifth, and its vectors are made
	// anew then, unless what opens with those files is no Fitter any more: it has settled
	// an argument, say, and is a Resolver.
	Fit(ctx context.Context, rows iter.Seq2[[]TrainingRow, error]) error
}

// TrainingRow is what a Fitter learns from. Text, Vector and Samples are there where
// the stage's Fits names them.
type TrainingRow struct {
	ID, Text string
	// Label is empty where a source has none. With Samples: the text belongs to none of the labels
	// that the voters know. A row with nothing but a Label is no text: it names a label that is
	// described, but has no example (Described.Alone). Only stages that learn from Samples get such rows,
	// before the others.
	Label   string
	Vector  []float32
	Samples []Sample // of the voters that come before the stage
	// HeldOut says that the row is one of the knowledge, kept out of what the voters saw:
	// items may differ from those more than from rows that somebody labelled to learn from.
	HeldOut bool
	// Description says that the text is no example of the label: it says what the label stands for.
	Description bool
}

// Pending is the error of an Embed, Sample or Enrich whose results come later: a
// service works on the rows, for minutes or hours. The engine keeps the handle and asks
// for the results with the Collect method of the stage, which is an EmbedCollector,
// SampleCollector or EnrichCollector and made with Pends. That may be in another process,
// and for a part of the rows at a time.
// A row is the same one where all is that the stage sees of it, the id of an item
// included. A collection that fails with Invalid ends the work: those rows are asked for
// anew the next time. Vectors of queries are not waited for.
type Pending struct {
	Handle    string        // names the work; without a secret, at most 64 KiB
	PollAfter time.Duration // the least time to wait; 0: no opinion
	Note      string        // how far the work is, in a few words for people; empty: unknown
}

func (p *Pending) Error() string {
	return fmt.Sprintf("the results come later, not before %v have passed", p.PollAfter)
}

// EmbedCollector is an Embedder that may be Pending.
type EmbedCollector interface {
	// CollectVectors returns what Embed would for some of the texts of the work that
	// handle names, or is Pending again.
	CollectVectors(ctx context.Context, handle string, role Role, texts []string) ([][]float32, error)
}

// SampleCollector is a Sampler that may be Pending.
type SampleCollector interface {
	// CollectSamples returns what Sample would for some of the items of the work that
	// handle names, or is Pending again.
	CollectSamples(ctx context.Context, handle string, b Batch) ([][]Sample, error)
}

// EnrichCollector is an Enricher that may be Pending.
type EnrichCollector interface {
	// CollectAdditions returns what Enrich would for some of the passages of the work
	// that handle names, or is Pending again.
	CollectAdditions(ctx context.Context, handle string, passages []Passage) ([]Addition, error)
}

// Resolver is a stage that chooses values for arguments that were left to it when it
// opens: a precision, a profile.
type Resolver interface {
	// Resolved returns those values by the arguments' names. A later process
	// gets them as if the file had given them, and so chooses nothing anew.
	Resolved() map[string]any
}

// Reranker puts the candidates of items into a better order.
type Reranker interface {
	// Rerank returns, per item, the candidates that it ranks, best first, each
	// at most once. Candidates that it leaves out are no candidates any more.
	Rerank(ctx context.Context, b Batch) ([][]Ranked, error)
}

// Prompter writes the prompts for items.
type Prompter interface {
	// Prompt returns one or more prompts per item.
	Prompt(ctx context.Context, b Batch) ([][]Prompt, error)
}

// Sampler votes on items.
type Sampler interface {
	// Sample returns the voter's ballots per item; none means that it abstains.
	// A model gives Setup.Samples, the first of them with the number Item.Drawn.
	Sample(ctx context.Context, b Batch) ([][]Sample, error)
}

// Elector decides from the accepted answers of all voters.
type Elector interface {
	Elect(ctx context.Context, b Batch) ([]Verdict, error)
}

// Drawer is a stage that reads ColumnRandom and says which examples it wants.
type Drawer interface {
	Random() Draw
}

// Draw says which random examples a stage wants with each item. The engine
// draws them: the same ones for the same item, seed and knowledge. An entry that is
// added to the knowledge, changed or removed changes only the parts that have it, or had it.
type Draw struct {
	Count  int  // examples per item
	Parts  int  // of the same size, one after the other, such as one for each prompt; 0: one
	Shared bool // the same ones for all items
	Seed   uint64
}

// Fingerprinter identifies what a stage's output depends on beyond its arguments:
// a hash of its model, say. Same fingerprint, same input: same output. What a
// third party's chunker, enricher or embedder made is made again with every other
// binary of its plugin, unless the stage has this method, or a Revision, and says the
// same.
type Fingerprinter interface {
	Fingerprint() string
}

// Store keeps collections of entries and searches them. It returns what each
// leg of a search found; the SDK fuses the legs (package support), so that
// every store ranks alike.
//
// What is written to a collection by Put and Delete becomes visible and
// durable with Commit. A reader finds the state of one Commit; only a store on a server without transactions, which
// says so in its documentation, may show one half done for the seconds that it takes. If it is cut off there, Open
// returns no note, and the engine compares every entry. Changes that are not committed are lost when the store
// is closed or killed.
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
// the schema's analyzer (package support) finds in the context and in the text:
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
