package sdk

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Attaches declares that a store can serve a collection that another program made. If the string
// argument of that name is given and not empty, the store that opens is an Attacher. The knowledge of
// a pipeline file then needs no source; for every other store, a knowledge without a source is
// refused.
func Attaches(argument string) Option { return func(s *Stage) { s.Attaches = argument } }

// Attacher is a Store that serves a collection of another program, read-only: an attached collection.
// Search, Get and Scan keep the promises of Store, with these differences:
//
//   - An Entry has no Hash. Keys that are not strings become ids as text, such as "17".
//   - A row without an id cannot be an entry and is left out.
//   - Hits.Dense is the cosine, whatever metric the server uses. If the server's metric depends on the
//     lengths of vectors, the server may choose other entries than those with the best cosines. The first
//     rows do not show the lengths of all vectors: Search.Norm comes from many more rows.
//   - Hits.Lexical is the server's own score; greater is better. If Attached.Lexical is false,
//     Hits.Lexical is nil in a hybrid search, and a lexical search is refused.
//   - Rows that the owner writes meanwhile appear when the server shows them.
type Attacher interface {
	Store
	// Attach opens the collection that the config names, and returns what it found there. It writes
	// nothing, there or anywhere. Afterwards Search, Get and Scan accept Attached.Name; before, they
	// refuse it. Put, Delete, Commit and Drop refuse it with an error made by Invalid. Attach may be
	// called again to look for changes, also while searches run: later searches use what it found. If
	// it returns another Name, the names that it returned before still work. An error says what the
	// owner of the collection, or of the file, can do about it; an ArgumentError points at the
	// argument in the file.
	Attach(ctx context.Context) (Attached, error)
}

// Attached describes the collection of another program that an Attacher found.
type Attached struct {
	Name string // its name for Search, Get and Scan
	// ID identifies the collection behind the name. It changes if an alias is swapped, or if the
	// collection was made anew under its name. It stays the same if only rows change.
	ID        string
	Entries   int  // as the server counts them, perhaps with deleted ones
	Dimension int  // of the vectors
	Lexical   bool // words can be searched; otherwise a hybrid search is dense only, and a lexical one is refused
	Labels    bool // entries have labels
	Fields    []AttachedField
	Notes     []string // what the collection lacks and why, and how to read scores; a sentence each, for people
}

// AttachedField says which field of the collection a part of the entries comes from, for people.
type AttachedField struct {
	Part  string `json:"part"`  // "id", "text", "label", "context", "vector", "meta", or "sparse", by which words are searched
	Field string `json:"field"` // of the collection
	Why   string `json:"why"`   // "named in the file", "the only vector field"
}

// Forecaster is a Sampler that can forecast what an item would cost, without calling a service. The
// engine asks only built-in stages: it opens them in its own process, with a Host that permits no
// call. For other stages the engine knows no bound.
type Forecaster interface {
	Forecast(item Item) (Forecast, error)
}

// EnrichForecaster is a Forecaster for an Enricher. It forecasts all passages of a document together.
type EnrichForecaster interface {
	ForecastPassages(passages []Passage) (Forecast, error)
}

// Forecast says what it costs to ask about an item once. Answers from the response cache of the Host
// cost nothing.
type Forecast struct {
	Cached  int // answers that are in the response cache
	Answers int // answers to ask for, since they are not in the response cache

	Requests int // for Answers, if the service gives all answers that each request asks for
	// Likely is the expected usage of the requests. Its CachedTokens come from such requests of
	// earlier runs.
	Likely Usage
	// Low and High are the range of Likely.OutputTokens: wide if the model thinks before it answers.
	Low, High uint64

	MostRequests int // requests if each of them gives only one answer
	// Most is the highest usage of all requests whose answers arrive.
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

// CharactersPerToken is about how many characters of English text a token has, with the tokenizers of
// today's models. Other languages have fewer.
const CharactersPerToken = 4

// EstimateTokens estimates the tokens of a text from its number of characters, rounded up.
func EstimateTokens(characters int) int {
	return (characters + CharactersPerToken - 1) / CharactersPerToken
}

// Kind says what a stage does, and so which interface it implements.
type Kind string

// The kinds of stages. The name of a kind is the name of its block in the file. The exception is a
// store: a knowledge block names it, and retrieve searches it.
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

// Every method below works on a whole batch and returns one result per row, in order. To fail single
// rows, return the results together with RowErrors; any other error fails the batch. The engine fails
// a row whose result has a number that is not finite or out of bounds. Several goroutines may call
// methods at once. If a stage also implements io.Closer, it is closed before its process ends. If it
// implements Fingerprinter, it identifies what its output depends on.

// Chunker cuts documents into chunks.
type Chunker interface {
	// Chunk returns the chunks of each document, ordered by Start. No chunk is empty, and each begins
	// and ends between characters. Chunks may overlap. Together they cover every byte that is not
	// white space, so that their spans give the document back. A document of white space alone has no
	// chunks.
	Chunk(ctx context.Context, documents []Document) ([][]Chunk, error)
}

// Enricher adds information to passages that their own words do not have.
type Enricher interface {
	// Enrich returns an addition per passage. Documents come complete: all passages of a document come
	// one after the other, in order. If a single passage fails, it is stored without an addition; if
	// the same build meets its document again, the passage is left out. If a document ends the process
	// or makes it hang, its passages come again in parts, until the passage to blame is found.
	Enrich(ctx context.Context, passages []Passage) ([]Addition, error)
}

// Role is the role of a text, for embedding models that treat passages and queries differently.
type Role uint8

// The roles of a text.
const (
	RolePassage Role = iota + 1 // a text to be stored and found
	RoleQuery                   // a text to search with
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Dimension is the length of the vectors.
	Dimension() int
	// Embed returns a vector of length Dimension for each text. Its norm is 1; if the text has nothing
	// to embed, the vector is all zero.
	Embed(ctx context.Context, role Role, texts []string) ([][]float32, error)
}

// Fitter learns from the knowledge before it does anything else. An Embedder, Sampler, Reranker or
// Elector can be a Fitter as well. The option Fits declares that.
type Fitter interface {
	// Fit learns from rows, which come once and in batches; an error among them ends Fit. Fit writes
	// what it learnt into Setup.StateDir, replaces what an earlier Fit wrote there, and uses it from
	// then on. A later process with the same folder reads it on opening, and is not fitted again.
	//
	// An embedder's files have at most 64 KiB together, since they are stored with the vectors. An
	// embedder is fitted again once the knowledge has grown or shrunk by a fifth; then all vectors are
	// made anew. That does not happen if the stage that opens with those files is no Fitter any more:
	// it has settled an argument, say, and is a Resolver.
	Fit(ctx context.Context, rows iter.Seq2[[]TrainingRow, error]) error
}

// TrainingRow is a row that a Fitter learns from. Text, Vector and Samples are filled if the stage's
// Fits names them.
type TrainingRow struct {
	ID, Text string
	// Label is empty if a source has no label. In a row with Samples, an empty Label means: the text
	// belongs to none of the labels that the voters know. A row with only a Label names a label that
	// has a description and no example (Described.Alone). Only stages that learn from Samples get such
	// rows, before all others.
	Label   string
	Vector  []float32
	Samples []Sample // of the voters before the stage
	// HeldOut says that the row comes from the knowledge, and that the voters did not see it. Items
	// may differ from the voters' rows more than from rows that somebody labelled for training.
	HeldOut bool
	// Description says that the text is no example of the label, but describes it.
	Description bool
}

// Pending is the error of an Embed, Sample or Enrich whose results come later: a service works on the
// rows, for minutes or hours. The stage is then an EmbedCollector, SampleCollector or
// EnrichCollector, made with Pends. The engine keeps the handle and asks for the results with the
// stage's Collect method, perhaps from another process, and for some of the rows at a time.
//
// Two rows are the same if everything that the stage sees of them is the same, including the id of an
// item. A collection that fails with Invalid ends the work: the next time, those rows are requested
// anew. The engine does not wait for vectors of queries.
type Pending struct {
	Handle    string        // identifies the work; without a secret, at most 64 KiB
	PollAfter time.Duration // the least time to wait; 0: no opinion
	Note      string        // how far the work is, in a few words for people; empty: unknown
}

func (p *Pending) Error() string {
	return fmt.Sprintf("the results come later, not before %v have passed", p.PollAfter)
}

// EmbedCollector is an Embedder that may return Pending.
type EmbedCollector interface {
	// CollectVectors returns the results of Embed for some of the texts of a work, or is Pending
	// again. The handle identifies the work.
	CollectVectors(ctx context.Context, handle string, role Role, texts []string) ([][]float32, error)
}

// SampleCollector is a Sampler that may return Pending.
type SampleCollector interface {
	// CollectSamples returns the results of Sample for some of the items of a work, or is Pending
	// again. The handle identifies the work.
	CollectSamples(ctx context.Context, handle string, b Batch) ([][]Sample, error)
}

// EnrichCollector is an Enricher that may return Pending.
type EnrichCollector interface {
	// CollectAdditions returns the results of Enrich for some of the passages of a work, or is Pending
	// again. The handle identifies the work.
	CollectAdditions(ctx context.Context, handle string, passages []Passage) ([]Addition, error)
}

// Resolver is a stage that chooses, when it opens, the values of arguments that the file left open: a
// precision, a profile.
type Resolver interface {
	// Resolved returns those values by the names of the arguments. A later process gets the values as
	// if the file had given them, and so chooses nothing anew.
	Resolved() map[string]any
}

// Reranker sorts the candidates of items into a better order.
type Reranker interface {
	// Rerank returns, per item, the candidates that it ranks, best first, each at most once. The
	// engine drops candidates that are left out.
	Rerank(ctx context.Context, b Batch) ([][]Ranked, error)
}

// Prompter writes the prompts for items.
type Prompter interface {
	// Prompt returns one or more prompts per item.
	Prompt(ctx context.Context, b Batch) ([][]Prompt, error)
}

// Sampler votes on items.
type Sampler interface {
	// Sample returns the voter's ballots per item; none means that the voter abstains. A model gives
	// Setup.Samples ballots; the first of them has the number Item.Drawn.
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

// Draw says which random examples a stage wants with each item. The engine draws them: the same item,
// seed and knowledge give the same examples. If an entry of the knowledge is added, changed or
// removed, only the parts change that have or had this entry.
type Draw struct {
	Count  int  // examples per item
	Parts  int  // parts of the same size, one after the other, such as one for each prompt; 0: one
	Shared bool // all items get the same examples
	Seed   uint64
}

// Fingerprinter identifies what a stage's output depends on beyond its arguments: a hash of its
// model, say. The same fingerprint and the same input give the same output. For a third-party
// chunker, enricher or embedder, every other binary of its plugin makes all output anew. That does
// not happen if the stage has this method or a Revision, and its value is unchanged.
type Fingerprinter interface {
	Fingerprint() string
}

// Store keeps collections of entries and searches them. It returns what each leg of a search found;
// the SDK fuses the legs (package support), so that every store ranks alike.
//
// Changes by Put and Delete become visible and durable with Commit. A reader finds the state of one
// Commit. Only a store on a server without transactions may show half of a commit for the seconds
// that it takes; the documentation of such a store says so. If that commit is cut off, Open returns
// no note, and the engine compares every entry. Changes that are not committed are lost when the
// store is closed or killed. Several processes may have a collection open. If two of them change it
// at once, or one after the other without opening it again, Put, Delete or Commit may refuse one of
// them, with a transient error; what was committed stays.
//
// Any non-empty name may be the name of a collection. All strings may be any valid UTF-8, NUL
// included. Ids have 1 to 512 bytes, labels up to 512, texts and contexts up to 60,000. A store may
// refuse longer ones with an error made by Invalid; it then changes nothing, not even uncommitted
// changes. All methods but Open refuse a collection that this process has not opened, unless stated
// otherwise.
type Store interface {
	// Open makes a collection ready and returns its state. It creates a collection that does not
	// exist. It drops uncommitted changes of earlier processes and of this one. It refuses a
	// collection that was made with another schema.
	Open(ctx context.Context, collection string, schema Schema) (Collection, error)
	// Put adds entries and replaces entries with the same id; the last of several entries with one id
	// counts. Put refuses a whole batch if an entry has no id, a vector of another dimension, or NaN
	// or an infinity in its vector. Entries that are too long for the store fail alone, with
	// RowErrors; the others are stored.
	Put(ctx context.Context, collection string, entries []Entry) error
	// Delete removes entries; unknown ids are ignored.
	Delete(ctx context.Context, collection string, ids []string) error
	// Commit makes all changes since the last Commit durable and visible, together with a note of the
	// engine. There may be no changes.
	Commit(ctx context.Context, collection string, note []byte) error
	// Search returns for each query the best entries of each leg, best first; see Hits. A query whose
	// vector cannot be searched fails alone.
	Search(ctx context.Context, collection string, s Search, queries []Query) ([]Hits, error)
	// Get returns the entries with the given ids, without vectors, in the order of the ids. A repeated
	// id gives a repeated entry; an unknown id gives an Entry with an empty ID.
	Get(ctx context.Context, collection string, ids []string) ([]Entry, error)
	// Scan walks through a collection in a stable order that the store chooses. An entry that is
	// neither put nor deleted meanwhile is in exactly one page, whatever is committed between two
	// pages.
	Scan(ctx context.Context, collection string, s Scan) (Page, error)
	// List returns the collections of this store by name, whether opened or not. It leaves out
	// collections that cannot be read.
	List(ctx context.Context) ([]Collection, error)
	// Drop removes a collection with its contents, at once. The collection need not be open; if it
	// does not exist, that is no error. If another process writes it, Drop refuses with a transient
	// error.
	Drop(ctx context.Context, collection string) error
}

// Schema says what a collection is made for.
type Schema struct {
	Dimension int    // of the vectors
	Analyzer  string // of the lexical leg; empty: the collection has no lexical leg
}

// Collection is the committed state of a collection.
type Collection struct {
	Name      string // as in List; Open may leave it empty
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
	Texts         bool // return Text, Context and Meta of each entry; otherwise ID and Label are enough
	// Norm is the mean norm of an attached collection's vectors, in the engine's sample. 0: all norms
	// are 1, or nobody looked. With another norm, scores of a metric that depends on norms are no
	// cosines.
	Norm float64
}

// Query is one query of a search. Its vector is nil in a lexical search.
type Query struct {
	Text   string
	Vector []float32
	Filter *Filter // nil: all entries; queries may share a filter
}

// Hits are the best entries of each leg, best first; entries with equal scores are sorted by the
// bytes of their ids. A leg that was not asked is nil.
//
// The dense score is the cosine of the vectors, or 0 if the entry's vector is all zero. A query whose
// vector is all zero finds nothing.
//
// The lexical score is BM25 as in Lucene, with exact lengths, over the words that the schema's
// analyzer (package support) finds in the context and in the text:
//
//	sum over the query's words of  idf * tf / (tf + k1*(1 - b + b*length/average))
//	idf = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// A word that a query has twice counts twice. N, df and the average length count all committed
// entries, whatever a filter selects; k1 is 1.2 and b 0.75 unless configured. An entry that has none
// of the words is not found.
type Hits struct {
	Dense, Lexical []Hit
}

// Hit is an entry that one leg found. A store that also knows the other leg's score should set it;
// otherwise it sets Unscored.
type Hit struct {
	ID             string
	Dense, Lexical float32
	Entry          *Entry // with the parts that Search.Texts asks for; nil: the SDK gets the entry by its id
}

// Scan says which entries to return, and which parts of them. ID, Label and Hash are always filled.
type Scan struct {
	After   string   // Page.Next of the page before; empty: from the start
	Limit   int      // entries of a page at most, 0: no limit; a store ends a page earlier to fit a message
	Labels  []string // only entries with one of these labels; none: all
	Texts   bool     // with Text, Context and Meta
	Vectors bool     // with Vector, of which only the direction is preserved
}

// Page is a part of a collection.
type Page struct {
	Entries []Entry
	Next    string // empty: this was the last page
}

// Fusion says how the SDK merges the legs of a search into one ranking; package fuse has the
// formulas.
type Fusion struct {
	Method      string  // "weighted" or "rrf"
	DenseWeight float64 // weighted: the dense leg's share, 0 to 1
	K           int     // rrf: the rank constant
}

// Ranking describes a search, the fusion of its legs, and the length of the result.
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
