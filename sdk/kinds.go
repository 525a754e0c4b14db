package sdk

import (
	"context"
	"fmt"
	"iter"
	"time"
)

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
// ends, and one that implements Fingerprinter tells what its output depends on.

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
	ID, Text, Label string
	Vector          []float32
	Samples         []Sample // of the voters that come before the stage
	// HeldOut says that the row is one of the knowledge, kept out of what the voters saw:
	// items may differ from those more than from rows that somebody labelled to learn from.
	HeldOut bool
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

// Fingerprinter tells what a stage's output depends on beyond its arguments:
// a hash of its model, say. Same fingerprint, same input: same output. What a
// third party's chunker, enricher or embedder made is made again with every other
// binary of its plugin, unless the stage has this method, or a Revision, and says the
// same.
type Fingerprinter interface {
	Fingerprint() string
}
