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

// Filter selects entries of a collection by their id, label and metadata. It is a tree: And, Or and
// Not combine Parts; the other operators compare one field with Values.
//
// A comparison matches an entry if the entry's field has the same type and the comparison is true.
// Metadata that is missing or has another type matches no comparison, so Not of a comparison matches
// such entries. Strings are compared by their bytes.
type Filter struct {
	Op     FilterOp
	Parts  []Filter // And, Or: any number; And of none selects all, Or of none nothing; Not: one
	Field  Field
	Key    string // of the metadata, where Field is FieldMeta
	Values []any  // string, float64 or bool; one, but for In
}

// FilterOp is the operator of a node of a Filter.
type FilterOp uint8

// The operators of a Filter. Only strings and numbers have an order, and only strings a prefix.
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

// Field is the part of an entry that a Filter compares.
type Field uint8

// The fields of an entry that a Filter sees. ID and label are strings; the label of an entry without
// one is empty.
const (
	FieldID Field = iota + 1
	FieldLabel
	FieldMeta
)

// MaxFilterDepth bounds the nesting of filters, so that recursion over a filter from another process
// is safe.
const MaxFilterDepth = 32

// Check reports what is wrong with a filter. The other methods, and stores, accept only checked
// filters.
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

// Match reports whether a filter selects an entry. Every store has to agree with Match. A nil filter
// selects all entries.
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

// holds reports whether a comparison result satisfies the operator.
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

// String returns the filter as a pipeline file would write it. Equal filters give equal strings.
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

// Meta holds what a source knows of an entry or item besides text and label. Values are strings,
// float64 or bool.
type Meta map[string]any

// Entry is one stored unit of knowledge: a labelled utterance or a chunk.
type Entry struct {
	ID      string
	Text    string
	Label   string    // empty if the knowledge has no labels
	Context string    // lines and terms added to the text (JoinContext); embedded and searched with the text, never shown as part of it
	Meta    Meta      // nil: none
	Vector  []float32 // as the embedder returned it; nil if nobody asked for it
	Hash    []byte    // of the content that the entry was made from
}

// Item is one unit of the input on its way through a pipeline. A stage gets only the columns that it
// declared with Reads; ID and Drawn are always filled.
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
	Drawn      int      // number of samples that this stage has already given for the item; the next sample has this number
	// Rejected are the answers of those samples that were not accepted, in the order in which they
	// were given.
	Rejected []Rejection
}

// Rejection is a voter's answer that was not accepted.
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

// Ranked is a candidate as a reranker ranks it. Only the order counts; the score is for people and
// rules.
type Ranked struct {
	Candidate int     // index into the item's candidates
	Score     float32 // between -1e30 and 1e30; comparable only within one reranker
}

// Unscored marks a Dense or Lexical score that a leg did not compute. Every comparison with it is
// false, so a rule never accepts it.
var Unscored = float32(math.NaN())

// Prompt is the question to a language model: a text to complete, or a chat.
type Prompt struct {
	Text     string
	Messages []Message // of a chat, which ends with a message of the user; Text is empty then
	Labels   []string  // the allowed answers; nil: any
	None     string    // the answer for no fitting label; empty: it is not allowed
	// Fields are the properties of the JSON object that the model shall answer, in order;
	// LabelProperty or LabelsProperty is one of them. nil: the answer is plain text.
	Fields []string
	// Passages are the ids of the candidates that the prompt shows, by number from 1. The answer is
	// then None, or a text of any length that cites candidates as [1] or [2, 5]; Labels and Fields are
	// nil. Empty, not nil: the text shall cite nothing. nil: the answer is a label.
	Passages []string
	// Levels is the separator between the levels of Labels (LabelForm), if the model is to be asked
	// level by level: the chat shows only the nodes of the first level. The caller then asks for the
	// nodes below each answer. Empty: the model is asked for a complete label.
	Levels string `json:",omitempty"`
}

// LabelProperty is the property of a JSON answer that holds the label.
const LabelProperty = "label"

// LabelsProperty is the property of a JSON answer that holds a list of labels, the likeliest first,
// or a set of labels (LabelForm). An empty list says that none of the labels fits.
const LabelsProperty = "labels"

// Message is one turn of a chat.
type Message struct {
	Role string // MessageSystem, MessageUser or MessageAssistant
	Text string
	// Shared says that many prompts begin with the same messages up to this one. Services that cache
	// only marked beginnings need this mark.
	Shared bool
}

// The roles of a message.
const (
	MessageSystem    = "system"
	MessageUser      = "user"
	MessageAssistant = "assistant"
)

// Sample is one ballot of one voter: a single answer of a language model, or a statistical voter's
// distribution over labels. A model that is asked n times returns n samples.
type Sample struct {
	Voter   string   // the sample block's name; filled in by the engine
	Answers []Answer // best first
	Usage   Usage
	// Text is what a model wrote. It is no result. If none of the answers is accepted and the voter is
	// asked again, the engine returns it in Item.Rejected. Empty: use the answers instead.
	Text string
	// Model is the name of the model that gave the sample, if the voter has several.
	Model string
	// Key is the key of the service's reply in the response cache (Host.CachePut), for later lookup.
	// Zero: there is none.
	Key Key
	// Distance is the distance of the text from the voter's training data, up to 1. 0: the voter does
	// not say. It is comparable only with the same voter's distances of other texts.
	Distance float64
}

// Answer is a label with its weight within one sample. The weights of a sample are from 0 to 1e100;
// elections normalise them.
type Answer struct {
	Label    string // the label, or a text if the prompt has passages; empty: none of the labels fits
	Weight   float64
	Accepted bool // by the voter and the accept rules; set by the engine
	// Reason says why the answer is not accepted. A voter sets it if the reply cannot be an answer (a
	// refusal, a text that was cut off). The engine sets it if an accept rule drops the answer.
	Reason string
	// Reading says, in a few words, how the label was found in a text that is not exactly the label:
	// "without markup". Empty: the text is the label.
	Reading string
	// Explanation is the model's own reason, if the voter keeps it.
	Explanation string
}

// Usage counts the tokens that a sample cost when it was made, at most 2^40 each; zero if it cost
// none.
type Usage struct {
	InputTokens  uint64 // including CachedTokens, which the server had cached
	CachedTokens uint64
	OutputTokens uint64
}

// MaxTokens is more than one call can use: 128 answers of 32 million tokens each, or a prompt of that
// length. Sums of values up to MaxTokens do not overflow.
const MaxTokens = 1 << 32

// Plausible reports whether one call can have used that much. A service that reports more makes a
// mistake.
func (u Usage) Plausible() bool {
	return max(u.InputTokens, u.CachedTokens, u.OutputTokens) <= MaxTokens
}

// Add adds the cost of other. A sum that exceeds a uint64 stays at the largest uint64.
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

// Verdict is the decision of an election on one item.
type Verdict struct {
	Answer    string  // a label, a set as JoinLabels writes it, or a node; empty: no answer was acceptable, or the voters say that no label fits
	Agreement float64 // share of the votes that the answer got, 0 to 1
	// Confidence is the probability that the answer is right, 0 to 1. An election estimates it on
	// answers that are known to be right or wrong. 0: it does not estimate it.
	Confidence float64
	// Unknown is the probability that the text belongs to none of the labels of the knowledge, 0 to 1.
	// 0: the election does not estimate it.
	Unknown float64
	// Labels are the labels of the set that is the answer, the surest first. For labels with levels,
	// they are the nodes of the tree from the top down to the likeliest label, even below the answer.
	// A set, or a label without levels, may also list other likely labels. nil: the election does not
	// estimate them.
	Labels []LabelConfidence `json:",omitempty"`
	Reason string            // why there is no answer
}

// Column names a part of an item. A stage gets only the columns that it reads.
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

// String returns the name of the column in documents.
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

// Batch is the input of one call of a stage.
type Batch struct {
	Items  []Item
	Labels []string // all labels of the knowledge, sorted; empty unless read
	// Described holds the table of label descriptions, by label; it comes with Labels. nil: there is
	// no table.
	Described map[string]Described
}

// Described holds a label's row of the table of label descriptions.
type Described struct {
	Name string // for people; empty: the label itself
	Text string // what the label stands for; empty: the table does not say
	// Alone says that the knowledge has no example of the label, only its description.
	Alone bool
}

// Trace identifies the operation that a call is part of, by the headers of W3C Trace Context
// (https://www.w3.org/TR/trace-context/).
type Trace struct {
	Parent string // header traceparent; empty: nobody traces
	State  string // header tracestate; empty: none
}

type traceKey struct{}

// Between processes, a trace travels as metadata with these names: with each call of a stage, and
// with each request of a stage to the engine.

// WithTrace returns a context whose calls are part of a trace. The engine gives such contexts to
// stages; a stage that calls a service passes the headers on.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace that a call is part of; the zero Trace: none.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
