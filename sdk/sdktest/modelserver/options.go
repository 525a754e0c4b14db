package modelserver

import "time"

// Options say how a server behaves. The zero Options answer at once and right. With adds
// behaviours by name.
type Options struct {
	Latency time.Duration // of every reply
	Key     string        // that requests must bring; empty: any
	// Answer gives the text of one choice; without one it is the first label
	// that the request allows, or "answer". Where the request asks for a JSON
	// object, a text that is none becomes its label.
	Answer func(a Ask, choice int) string
	// Vector gives the embedding of a text; without one it is drawn from the
	// text's hash, with Dimension numbers (8 if that is 0).
	Vector    func(text string) []float32
	Dimension int

	Refuse func(Ask) bool // requests that are answered with 400; nil: none
	// Unsupported are names of fields of a request, such as temperature, that the model
	// does not take; n is refused from 2 on. "json_schema", "json_object" and "choice" are
	// forms of an answer, and "whole" is a reply that is not streamed.
	Unsupported []string
	Nameless    bool // a refusal names its field in the message, but has no param

	Forms    []Form   // of answers, each applied to what the one before gives
	Shape    Shape    // of messages
	Thinks   Thinking // before each answer
	Thoughts string   // what it thinks; empty: some lines of 400 characters
	// ThoughtsOf gives the thoughts of one choice in place of these, but to probes; nil: all are alike.
	ThoughtsOf   func(a Ask, choice int) string
	Stops        bool      // a text ends at a stop text of the request, also within thoughts
	IgnoreFormat bool      // answers are plain, whatever form a request asks for
	Usage        UsageKind // what replies say of their tokens
	Bytes        bool      // a token is one byte, not four
	Streams      bool      // replies are streams, also where the request does not say so
	// Count counts the tokens of a text, as a tokenizer does, in place of that. Template and
	// Frame are then the tokens that a chat, and each of its messages, has beside its texts.
	Count           func(text string) int
	Template, Frame int
	IgnoreN         bool // one choice, whatever n says
	MaxN            int  // a larger n is refused; 0: none
	MaxInputs       int  // of one request for embeddings; more are refused; 0: 2,048
	Base64          Base64
	Shuffle         bool // embeddings come in another order, with their index

	Faults []Fault // the first that applies to a request happens
	Seed   uint64  // of the draws by Fault.Share

	Batches Batches // files of requests that are answered later

	// Probes makes probes requests like all others: they are counted, and Answer, Refuse
	// and Faults apply to them. Otherwise they get the first label or "answer".
	Probes bool
}

// Form changes how an answer is written, not what it says; object says that it is a JSON
// object that the request asks for.
type Form func(answer string, object bool) string

// Shape is where a message has its answer.
type Shape uint8

// The shapes.
const (
	AsText     Shape = iota // content is a text
	AsParts                 // content is a list with a part of type text
	AsToolCall              // there is no content but the call of a tool, also where none is offered
)

// Thinking is where a model's thoughts are.
type Thinking uint8

// The ways of thinking. reasoning_effort = "low" makes thoughts a quarter as long,
// "minimal" and "none" leave them out. max_tokens counts them.
const (
	NotAtAll    Thinking = iota
	InTags               // <think> before the answer
	InOtherTags          // <thinking> before the answer
	InAField             // reasoning_content beside the answer
	Silently             // nowhere, but counted
	InChannels           // a channel of their own, before that of the answer, as gpt-oss writes
)

// UsageKind is what replies say of their tokens.
type UsageKind uint8

// The kinds.
const (
	UsageGiven   UsageKind = iota
	UsageMissing           // nothing
	UsageAbsurd            // an impossible number of completion tokens
)

// Base64 says what a server does with encoding_format = "base64".
type Base64 uint8

// What a server does with it.
const (
	Base64Given   Base64 = iota // it obeys
	Base64Ignored               // it sends numbers
	Base64Refused               // it answers 400
)
