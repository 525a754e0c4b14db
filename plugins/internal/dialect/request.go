package dialect

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/sdk"
)

// Request is a request to a model. A stage leaves Form, MaxTokensField and Stream unset if the file does not set
// them.
type Request struct {
	Model    string
	Messages []sdk.Message // a chat; if empty, the model continues Prompt
	Prompt   string
	N        int // number of answers; 0: one

	Temperature, TopP *float64 // nil: not sent
	Seed              *int
	MaxTokens         int // of the visible answer; 0: no limit
	Stop              []string
	Logprobs          bool

	Schema  json.RawMessage // strict JSON schema of the answer; nil: a text
	Form    Form            // how Schema is sent
	Choice  []string        // the only allowed answers, for vLLM's structured_outputs; nil: any
	Grammar string          // of the answer in GBNF, for llama.cpp's completions; empty: none

	Effort         string         // of thinking; empty: not sent
	MaxTokensField string         // the field in which MaxTokens is sent; empty: max_tokens
	Stream         bool           // the answer should come as events
	CacheMarks     bool           // mark the end of Shared messages
	PromptCacheKey string         // empty: not sent
	Extra          map[string]any // further fields, which replace fields of the same name

	// About is the kind of the request: the block that makes it and what it asks for. Requests of one kind have
	// answers of similar length. It is not sent.
	About string `json:"-"`
}

// body is a request for both endpoints. go-openai's own types omit a temperature of 0 and empty messages, round
// numbers to float32, and lack fields that servers have.
type body struct {
	Model               string                               `json:"model"`
	Messages            []message                            `json:"messages,omitempty"`
	Prompt              string                               `json:"prompt,omitempty"`
	N                   int                                  `json:"n,omitempty"`
	MaxTokens           int                                  `json:"max_tokens,omitempty"`
	MaxCompletionTokens int                                  `json:"max_completion_tokens,omitempty"`
	Temperature         *float64                             `json:"temperature,omitempty"`
	TopP                *float64                             `json:"top_p,omitempty"`
	Seed                *int                                 `json:"seed,omitempty"`
	Stop                []string                             `json:"stop,omitempty"`
	Logprobs            any                                  `json:"logprobs,omitempty"` // true for a chat, a number for a text
	TopLogprobs         int                                  `json:"top_logprobs,omitempty"`
	ResponseFormat      *openai.ChatCompletionResponseFormat `json:"response_format,omitempty"`
	Tools               []openai.Tool                        `json:"tools,omitempty"`
	ToolChoice          *openai.ToolChoice                   `json:"tool_choice,omitempty"`
	StructuredOutputs   *structuredOutputs                   `json:"structured_outputs,omitempty"`
	Grammar             string                               `json:"grammar,omitempty"`
	ReasoningEffort     string                               `json:"reasoning_effort,omitempty"`
	PromptCacheKey      string                               `json:"prompt_cache_key,omitempty"`
	Stream              bool                                 `json:"stream,omitempty"`
	StreamOptions       *openai.StreamOptions                `json:"stream_options,omitempty"`
}

type structuredOutputs struct {
	Choice []string `json:"choice"`
}

// MaxCompletionTokens is the newer name of max_tokens.
const MaxCompletionTokens = "max_completion_tokens"

// Body implements Dialect.
func (OpenAI) Body(r Request) (any, error) {
	if r.Schema != nil && (r.Form == FormObject || r.Form == FormText) {
		r = Instruct(r)
	}
	b := body{
		Model: r.Model, Messages: messages(r), Prompt: r.Prompt, N: r.N,
		Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed, Stop: r.Stop,
		ReasoningEffort: r.Effort, PromptCacheKey: r.PromptCacheKey, Stream: r.Stream,
	}
	if r.MaxTokensField == MaxCompletionTokens {
		b.MaxCompletionTokens = r.MaxTokens
	} else {
		b.MaxTokens = r.MaxTokens
	}
	if r.Logprobs {
		b.Logprobs, b.TopLogprobs = true, chatAlternatives
		if r.Messages == nil {
			b.Logprobs, b.TopLogprobs = textAlternatives, 0
		}
	}
	if r.Choice != nil {
		b.StructuredOutputs = &structuredOutputs{r.Choice}
	}
	if r.Stream {
		b.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	b.structure(r)
	return merge(b, r.Extra)
}

// How many alternatives to each token are requested: the most that OpenAI, vLLM and Ollama give.
const (
	chatAlternatives = 20
	textAlternatives = 5
)

// answerName is the name of the schema, and of the tool that takes an answer.
const answerName = "answer"

// structure adds the fields that restrict the answer to a schema.
func (b *body) structure(r Request) {
	if r.Schema == nil {
		return
	}
	switch r.Form {
	case FormSchema:
		b.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: answerName, Schema: r.Schema, Strict: true},
		}
		if r.Messages == nil {
			b.Grammar = r.Grammar
		}
	case FormObject:
		b.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	case FormTool:
		b.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: answerName, Description: "Takes the answer.", Strict: true, Parameters: r.Schema,
		}}}
		b.ToolChoice = &openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: answerName}}
	}
}

// message is a message in the form of OpenAI's endpoint: its content is a text or a list of parts.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type part struct {
	Type         string            `json:"type"`
	Text         string            `json:"text"`
	CacheControl map[string]string `json:"cache_control"`
}

// messages converts the messages of a chat.
func messages(r Request) []message {
	sent, marked := make([]message, len(r.Messages)), lastShared(r.Messages, r.CacheMarks)
	for i, m := range r.Messages {
		sent[i] = message{m.Role, m.Text}
		if marked[i] {
			sent[i].Content = []part{{"text", m.Text, map[string]string{"type": "ephemeral"}}}
		}
	}
	return sent
}

// maxMarks is how many marked parts of a request Anthropic allows.
const maxMarks = 4

// lastShared returns the messages to mark. The last messages come first, since the last mark covers most.
func lastShared(chat []sdk.Message, marks bool) map[int]bool {
	marked := map[int]bool{}
	for i := len(chat) - 1; i >= 0 && marks && len(marked) < maxMarks; i-- {
		if chat[i].Shared && chat[i].Text != "" {
			marked[i] = true
		}
	}
	return marked
}

// Instruct returns a request whose prompt asks in words for an answer that fits the schema. In a chat the instruction
// comes last, so that the beginning stays in the service's cache. In a text to continue it comes first, since the end
// must not change.
func Instruct(r Request) Request {
	instruction := "Answer with a JSON object that fits this JSON schema, and with nothing else:\n" + string(r.Schema)
	n := len(r.Messages)
	switch {
	case n == 0:
		r.Prompt = instruction + "\n\n" + r.Prompt
	case r.Messages[n-1].Role == sdk.MessageUser:
		last := r.Messages[n-1]
		last.Text, last.Shared = last.Text+"\n\n"+instruction, false
		r.Messages = append(r.Messages[:n-1:n-1], last)
	default:
		r.Messages = append(r.Messages[:n:n], sdk.Message{Role: sdk.MessageUser, Text: instruction})
	}
	return r
}

// merge returns a body with further fields, which replace fields of the same name. Values are not reformatted, since
// the order of a schema's properties matters.
func merge(body any, extra map[string]any) (any, error) {
	if len(extra) == 0 {
		return body, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range extra {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// OpenAI is the dialect of OpenAI's chat and text completions, which most servers and gateways use.
type OpenAI struct {
	APIVersion string // of Azure, where deployments are the models; empty: not Azure
}

var _ Dialect = OpenAI{}

// Path implements Dialect.
func (o OpenAI) Path(r Request) string {
	path := "/completions"
	if r.Messages != nil {
		path = "/chat/completions"
	}
	if o.APIVersion == "" {
		return path
	}
	return "/openai/deployments/" + url.PathEscape(r.Model) + path + "?api-version=" + url.QueryEscape(o.APIVersion)
}

// Header implements Dialect.
func (o OpenAI) Header(key string) http.Header {
	switch {
	case key == "":
		return nil
	case o.APIVersion != "":
		return http.Header{"Api-Key": {key}}
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}

// Form is how a model is asked to follow a schema.
type Form string

// The forms, the strictest first.
const (
	FormSchema Form = ""       // response_format json_schema
	FormObject Form = "object" // response_format json_object, and the schema in the prompt
	FormTool   Form = "tool"   // the arguments of a tool call
	FormText   Form = "text"   // the schema in the prompt alone
)

// Forms lists the forms in the order in which they are tried, the strictest first.
var Forms = []Form{FormSchema, FormObject, FormTool, FormText}

// Key is the cache key of the first answer to a request. address and path say where the request is sent. parts
// describe how the answer is processed before it is cached. N and fields that do not change an answer do not count.
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
