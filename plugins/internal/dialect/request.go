package dialect

import (
	"encoding/json"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Request is what a model is asked for. A stage leaves Form, MaxTokensField and Stream
// as they are where the file says nothing of them.
type Request struct {
	Model    string
	Messages []sdk.Message // a chat; none: Prompt is continued
	Prompt   string
	N        int // answers to give; 0: one

	Temperature, TopP *float64 // nil: not sent
	Seed              *int
	MaxTokens         int // of the visible answer; 0: no limit
	Stop              []string
	Logprobs          bool

	Schema  json.RawMessage // strict JSON schema of the answer; nil: a text
	Form    Form            // how Schema is sent
	Choice  []string        // the only answers that vLLM's structured_outputs allows; nil: any
	Grammar string          // of the answer in GBNF, for llama.cpp's completions; empty: none

	Effort         string         // of thinking; empty: not sent
	MaxTokensField string         // the name under which MaxTokens is sent; empty: max_tokens
	Stream         bool           // the answer is to come as events
	CacheMarks     bool           // mark the end of Shared messages
	PromptCacheKey string         // empty: not sent
	Extra          map[string]any // further fields, which replace others of their name
}

// Form is how a model is told to write its answer by a schema.
type Form string

// The forms, from the strictest on.
const (
	FormSchema Form = ""       // response_format json_schema
	FormObject Form = "object" // response_format json_object, and the schema in the prompt
	FormTool   Form = "tool"   // the arguments of a tool call
	FormText   Form = "text"   // the schema in the prompt alone
)

// Forms lists the forms from the strictest on, in the order in which they are tried.
var Forms = []Form{FormSchema, FormObject, FormTool, FormText}

// Key is the key in the response cache of the first answer to a request that goes to
// an address below which the dialect has its path. Parts say what is made of the answer
// before it is cached. N and what does not change an answer do not count.
func (r Request) Key(address, path string, parts ...string) sdk.Key {
	r.N, r.Stream, r.CacheMarks, r.PromptCacheKey = 1, false, false, ""
	r.Messages = slices.Clone(r.Messages)
	for i := range r.Messages {
		r.Messages[i].Shared = false
	}
	text, err := json.Marshal(r)
	if err != nil { // texts, finite numbers and JSON always can be encoded
		panic(err)
	}
	return sdk.KeyOf(append([]string{"request", address, path, string(text)}, parts...)...)
}
