package sdk

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Filter selects entries of a collection by their id, label and metadata. It
// is a tree: And, Or and Not combine Parts, the other operators compare one
// field with Values.
//
// A comparison matches an entry whose field has a value of the same type for which it is true.
// Metadata that is missing or of another type match no comparison, so Not of a comparison
// matches such entries. Strings are compared by their bytes.
type Filter struct {
	Op     FilterOp
	Parts  []Filter // And, Or: any number, none selects all or nothing; Not: one
	Field  Field
	Key    string // of the metadata, where Field is FieldMeta
	Values []any  // string, float64 or bool; one, but for In
}

// FilterOp is what a node of a Filter does.
type FilterOp uint8

// The operators of a Filter. Only strings and numbers have an order, only
// strings a prefix.
const (
	FilterAnd FilterOp = iota + 1
	FilterOr
	FilterNot
	FilterIn // the field is one of the values
	FilterLess
	FilterLessEqual
	FilterGreater
	FilterGreaterEqual
	FilterPrefix
)

// Field is what a Filter compares.
type Field uint8

// The fields of an entry that a Filter sees. ID and label are strings; an
// entry without a label has the empty one.
const (
	FieldID Field = iota + 1
	FieldLabel
	FieldMeta
)

// MaxFilterDepth bounds the nesting of filters, so that recursion over one from another
// process is safe.
const MaxFilterDepth = 32

// Check reports what is wrong with a filter. The other methods, and stores,
// take only checked ones.
func (f *Filter) Check() error { return f.check(MaxFilterDepth) }

func (f *Filter) check(depth int) error {
	if depth == 0 {
		return fmt.Errorf("a filter nests more than %d deep", MaxFilterDepth)
	}
	if f.Op <= FilterNot {
		if f.Op == 0 || f.Op == FilterNot && len(f.Parts) != 1 || f.Field != 0 || f.Key != "" || len(f.Values) > 0 {
			return fmt.Errorf("a filter's node of type %d with %d parts, field %d and %d values", f.Op, len(f.Parts), f.Field, len(f.Values))
		}
		for i := range f.Parts {
			if err := f.Parts[i].check(depth - 1); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case f.Op > FilterPrefix, f.Field < FieldID, f.Field > FieldMeta, f.Op != FilterIn && len(f.Values) != 1, len(f.Parts) > 0,
		f.Field != FieldMeta && f.Key != "":
		return fmt.Errorf("a filter's comparison of type %d with field %d and %d values", f.Op, f.Field, len(f.Values))
	}
	for _, v := range f.Values {
		number, isNumber := v.(float64)
		_, isBool := v.(bool)
		_, isString := v.(string)
		switch {
		case !isNumber && !isBool && !isString:
			return fmt.Errorf("a filter compares with a %T: use a string, a number or a bool", v)
		case math.IsNaN(number):
			return fmt.Errorf("a filter compares with NaN")
		case f.Field != FieldMeta && !isString:
			return fmt.Errorf("a filter compares the %s with %v: it is a string", f.name(), v)
		case f.Op != FilterIn && isBool, f.Op == FilterPrefix && !isString:
			return fmt.Errorf("a filter's %s does not go with %v", strings.TrimSpace(operators[f.Op]), v)
		}
	}
	return nil
}

// Match reports whether a filter selects an entry. Every store has to agree with it. A nil
// filter selects all.
func (f *Filter) Match(id, label string, meta Meta) bool {
	if f == nil {
		return true
	}
	match := func(part Filter) bool { return part.Match(id, label, meta) }
	switch f.Op {
	case FilterAnd:
		return !slices.ContainsFunc(f.Parts, func(p Filter) bool { return !match(p) })
	case FilterOr:
		return slices.ContainsFunc(f.Parts, match)
	case FilterNot:
		return !match(f.Parts[0])
	}
	var have any
	switch f.Field {
	case FieldID:
		have = id
	case FieldLabel:
		have = label
	default:
		have = meta[f.Key] // nil, where missing, equals no value
	}
	return slices.ContainsFunc(f.Values, func(want any) bool { return f.Op.compare(have, want) })
}

func (op FilterOp) compare(have, want any) bool {
	switch want := want.(type) {
	case string:
		have, ok := have.(string)
		return ok && (op == FilterPrefix && strings.HasPrefix(have, want) || op.holds(strings.Compare(have, want)))
	case float64:
		have, ok := have.(float64)
		return ok && (have < want && op.holds(-1) || have == want && op.holds(0) || have > want && op.holds(1))
	}
	return have == want
}

// holds reports whether an operator asks for an order.
func (op FilterOp) holds(order int) bool {
	switch op {
	case FilterIn:
		return order == 0
	case FilterLess:
		return order < 0
	case FilterLessEqual:
		return order <= 0
	case FilterGreater:
		return order > 0
	case FilterGreaterEqual:
		return order >= 0
	}
	return false
}

var operators = map[FilterOp]string{
	FilterAnd: " and ", FilterOr: " or ", FilterIn: " in ", FilterLess: " < ", FilterLessEqual: " <= ",
	FilterGreater: " > ", FilterGreaterEqual: " >= ", FilterPrefix: " startsWith ",
}

// String returns the filter as a pipeline file would have it. Equal
// filters give equal strings.
func (f *Filter) String() string {
	if f == nil {
		return "true"
	}
	switch f.Op {
	case FilterNot:
		return "not (" + f.Parts[0].String() + ")"
	case FilterAnd, FilterOr:
		if len(f.Parts) == 0 {
			return strconv.FormatBool(f.Op == FilterAnd)
		}
		parts := make([]string, len(f.Parts))
		for i := range f.Parts {
			parts[i] = f.Parts[i].String()
		}
		return "(" + strings.Join(parts, operators[f.Op]) + ")"
	}
	values := make([]string, len(f.Values))
	for i, v := range f.Values {
		values[i] = fmt.Sprint(v)
		if s, ok := v.(string); ok {
			values[i] = strconv.Quote(s)
		}
	}
	list := strings.Join(values, ", ")
	switch {
	case f.Op == FilterIn && len(values) == 1:
		return f.name() + " == " + list
	case f.Op == FilterIn:
		return f.name() + " in [" + list + "]"
	}
	return f.name() + operators[f.Op] + list
}

func (f *Filter) name() string {
	switch f.Field {
	case FieldID:
		return "id"
	case FieldLabel:
		return "label"
	}
	return "meta[" + strconv.Quote(f.Key) + "]"
}

// Meta is what a source has of an entry or item beside text and label.
// Values are strings, float64 or bool.
type Meta map[string]any

// Entry is one stored unit of knowledge: a labelled utterance or a chunk.
type Entry struct {
	ID      string
	Text    string
	Label   string    // empty where the knowledge has no labels
	Context string    // lines and terms added to the text (JoinContext); embedded and searched with it, never shown as the text
	Meta    Meta      // nil: none
	Vector  []float32 // as the embedder gave it; nil where it was not asked for
	Hash    []byte    // of the content that the entry was made from
}

// Item is one unit of the input on its way through a pipeline. A stage finds
// only those columns filled that it declared with Reads; ID and Drawn are
// always there.
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
	Drawn      int      // samples that this stage has given for the item before; the next has this number
	// Rejected are the answers among those that were not accepted, in the order in which they
	// were given.
	Rejected []Rejection
}

// Rejection is an answer of a voter that was not accepted.
type Rejection struct {
	Text   string // what the model wrote: Sample.Text, or the answer itself
	Reason string // why it was not accepted
}

// Candidate is an entry that a search proposes for an item.
type Candidate struct {
	ID, Text, Label, Context string
	Meta                     Meta
	Score                    float32 // after fusion, or the reranker's; comparable only within one method
	Dense                    float32 // cosine of the vectors; NaN: the dense leg did not score it
	Lexical                  float32 // BM25; NaN: the lexical leg did not score it
}

// Ranked is a candidate in the order of a reranker. The order counts; the score
// is for people and rules.
type Ranked struct {
	Candidate int     // index into the item's candidates
	Score     float32 // between -1e30 and 1e30; comparable only within one reranker
}

// Unscored marks a Dense or Lexical score that a leg did not compute. It
// compares false with every number, so a rule never lets it pass.
var Unscored = float32(math.NaN())

// Prompt is what a language model is asked: a text to complete, or a chat.
type Prompt struct {
	Text     string
	Messages []Message // of a chat, which ends with the user; Text is empty then
	Labels   []string  // the answers that are allowed; nil: any
	None     string    // the answer that says that no label fits; empty: it is not allowed
	// Fields are the properties of the JSON object that the answer is to be, in
	// order, LabelProperty or LabelsProperty among them; nil: the answer is plain text.
	Fields []string
	// Passages are the ids of the candidates that the prompt shows, by number: the
	// first is 1. The answer is then a text of any length that cites them as [1]
	// or [2, 5], or None; Labels and Fields are nil. Empty, not nil: a text that is
	// to cite nothing. nil: the answer is a label.
	Passages []string
	// Levels is what stands between the levels of Labels (LabelForm) if the model is to be asked level
	// by level: the chat shows only the nodes of the first one, and who asks goes on with those below
	// each answer. Empty: it is asked for a label at once.
	Levels string `json:",omitempty"`
}

// LabelProperty is the property of a JSON answer that holds the label.
const LabelProperty = "label"

// LabelsProperty is the property of a JSON answer that holds a list of labels, the
// likeliest first, or a set of them (LabelForm). An empty list says that none of the labels fits.
const LabelsProperty = "labels"

// Message is one turn of a chat.
type Message struct {
	Role string // MessageSystem, MessageUser or MessageAssistant
	Text string
	// Shared says that many prompts begin with the same messages up to this one:
	// a mark for services that cache only marked beginnings.
	Shared bool
}

// The roles of a message.
const (
	MessageSystem    = "system"
	MessageUser      = "user"
	MessageAssistant = "assistant"
)

// Sample is one ballot of one voter: a language model's single answer, or a
// statistical voter's distribution over labels. A model asked n times hands in
// n samples.
type Sample struct {
	Voter   string   // the sample block's name; filled in by the engine
	Answers []Answer // best first
	Usage   Usage
	// Text is what a model wrote. It is no result: the engine hands it back in Item.Rejected where
	// none of the answers is accepted and the voter is asked again. Empty: the answers say it.
	Text string
	// Model is the one that gave the sample, where the voter has several.
	Model string
	// Key is that of the service's reply in the response cache (Host.CachePut), so that it can be
	// looked up later. Zero: there is none.
	Key Key
	// Distance is how far the text lies from what the voter has learnt from, up to 1; 0: the voter
	// does not say. It is compared with the voter's own distances of other texts alone.
	Distance float64
}

// Answer is a label with its weight within one sample. Weights of a sample are
// from 0 to 1e100; elections normalise them.
type Answer struct {
	Label    string // the label, or the text where the prompt has passages; empty: that none of the labels fits
	Weight   float64
	Accepted bool // by the voter and the accept rules; set by the engine
	// Reason is why the answer is not accepted. A voter sets it for what cannot
	// be an answer (a refusal, a text that was cut off), the engine for what an
	// accept rule drops.
	Reason string
	// Reading says how a text was read that is not the label letter by letter, in a few words:
	// "without markup". Empty: it is.
	Reading string
	// Explanation is why, in the model's own words, where the voter keeps that.
	Explanation string
}

// Usage counts the tokens that a sample cost when it was made, at most 2^40 each;
// zero where none were spent.
type Usage struct {
	InputTokens  uint64 // with those that the server had cached
	CachedTokens uint64
	OutputTokens uint64
}

// MaxTokens is more than one call can take: 128 answers of 32 million tokens each,
// or as long a prompt. Sums of what is no more do not overflow.
const MaxTokens = 1 << 32

// Plausible reports whether one call can have taken that much. What services report
// beyond that is a mistake.
func (u Usage) Plausible() bool {
	return max(u.InputTokens, u.CachedTokens, u.OutputTokens) <= MaxTokens
}

// Add adds what other cost. A sum that a uint64 cannot hold stays at the largest.
func (u *Usage) Add(other Usage) {
	u.InputTokens = addTokens(u.InputTokens, other.InputTokens)
	u.CachedTokens = addTokens(u.CachedTokens, other.CachedTokens)
	u.OutputTokens = addTokens(u.OutputTokens, other.OutputTokens)
}

func addTokens(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}

// Verdict is what an election decides for one item.
type Verdict struct {
	Answer    string  // a label, a set as JoinLabels writes it, or a node; empty: no answer was acceptable, or the voters say that no label fits
	Agreement float64 // share of the votes that the answer got, 0 to 1
	// Confidence is the probability that the answer is right, 0 to 1, where the
	// election estimates it on answers that are known; 0: it does not.
	Confidence float64
	// Unknown is the probability that the text belongs to none of the labels of the knowledge,
	// 0 to 1; 0: the election does not estimate it.
	Unknown float64
	// Labels are the labels of a set that is the answer, the surest first, or the nodes of a tree from
	// the top down to the likeliest label, however far the answer goes. A set, or a label without levels,
	// may list other likely labels, too. nil: the election does not estimate them.
	Labels []LabelConfidence `json:",omitempty"`
	Reason string            // why there is no answer
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

// String is the name that documents give the column.
func (c Column) String() string {
	names := [...]string{
		ColumnText: "text", ColumnMeta: "meta", ColumnVector: "vector", ColumnCandidates: "candidates", ColumnCandidateTexts: "candidate texts",
		ColumnPrototypes: "prototypes", ColumnRandom: "random examples", ColumnLabels: "labels", ColumnPrompts: "prompts", ColumnSamples: "samples",
	}
	if int(c) >= len(names) {
		return "unknown"
	}
	return names[c]
}

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
	// Described is what a table says of labels, by label; it comes with Labels. nil: there is no table.
	Described map[string]Described
}

// Described is what a table of a knowledge's labels says of one.
type Described struct {
	Name string // for people; empty: the label itself
	Text string // what it stands for; empty: the table does not say
	// Alone says that the knowledge has no example of the label, only the text.
	Alone bool
}

// Trace names the operation that a call is part of, as the headers of W3C Trace Context do
// (https://www.w3.org/TR/trace-context/).
type Trace struct {
	Parent string // of the header traceparent; empty: nobody traces
	State  string // of the header tracestate; empty: none
}

type traceKey struct{}

// Between processes a trace travels as the metadata of that name, with each call of a stage
// and with what a stage asks the engine for.

// WithTrace returns a context whose calls are part of a trace. The engine gives stages
// such contexts, and a stage that calls a service passes the headers on.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace that a call is part of; the zero Trace: none.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
