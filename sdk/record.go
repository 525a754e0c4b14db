package sdk

import "math"

// Meta is what a source knows of an entry or item beyond its text and label.
// Values are strings, float64 or bool.
type Meta map[string]any

// Entry is one stored unit of knowledge: a labelled utterance or a chunk.
type Entry struct {
	ID      string
	Text    string
	Label   string    // empty where the knowledge has no labels
	Context string    // what situates the text; embedded and searched with it, never shown as the text
	Meta    Meta      // nil: none
	Vector  []float32 // as the embedder gave it; nil where it was not asked for
	Hash    []byte    // of the content that the entry was made from
}

// Item is one unit of the input on its way through a pipeline. A stage finds
// only those columns filled that it declared with Reads; ID is always there.
type Item struct {
	ID         string
	Text       string
	Meta       Meta
	Vector     []float32
	Candidates []Candidate // best first
	Prototypes []Candidate // label and Dense only: cosine to the label's centroid, nearest first
	Random     []Candidate // seeded examples from the knowledge, with their texts
	Prompts    []Prompt
	Samples    []Sample // of the voters above, in file order
}

// Candidate is an entry that a search proposes for an item.
type Candidate struct {
	ID, Text, Label, Context string
	Meta                     Meta
	Score                    float32 // after fusion; comparable only within one method
	Dense                    float32 // cosine of the vectors; NaN: the dense side did not score it
	Lexical                  float32 // BM25; NaN: the lexical side did not score it
}

// Unscored marks a Dense or Lexical score that a side did not compute. It
// compares false with every number, so a rule never lets it pass.
var Unscored = float32(math.NaN())

// Prompt is what a language model is asked.
type Prompt struct {
	Text string
}

// Sample is one ballot of one voter: a language model's single answer, or a
// statistical voter's distribution over labels. A model asked n times hands in
// n samples.
type Sample struct {
	Voter   string   // the sample block's name; filled in by the engine
	Answers []Answer // best first
	Usage   Usage
}

// Answer is a label with its weight within one sample. Weights of a sample are
// not negative; elections normalise them.
type Answer struct {
	Label    string
	Weight   float64
	Accepted bool // by the accept rules; set by the engine
}

// Usage counts the tokens that a sample cost; zero where none were spent.
type Usage struct {
	InputTokens, OutputTokens uint64
}

// Verdict is what an election decides for one item.
type Verdict struct {
	Answer    string  // empty: none of the answers was acceptable
	Agreement float64 // share of the votes that the answer got, 0 to 1
	Reason    string  // why there is no answer
}

// Column names a part of an item, so that a stage is sent only what it reads.
type Column uint8

// The columns of an item.
const (
	ColumnText Column = iota + 1
	ColumnMeta
	ColumnVector
	ColumnCandidates     // ids, labels and scores
	ColumnCandidateTexts // their texts, contexts and metadata too
	ColumnPrototypes
	ColumnRandom
	ColumnLabels // all labels of the knowledge; Batch.Labels
	ColumnPrompts
	ColumnSamples
)

// Columns is a set of columns.
type Columns uint32

// Of returns the set of the given columns.
func Of(columns ...Column) Columns {
	var s Columns
	for _, c := range columns {
		s |= 1 << c
	}
	return s
}

// Has reports whether c is in the set.
func (s Columns) Has(c Column) bool { return s&(1<<c) != 0 }

// Batch is what a stage works on at a time.
type Batch struct {
	Items  []Item
	Labels []string // all labels of the knowledge, sorted; empty unless read
}
