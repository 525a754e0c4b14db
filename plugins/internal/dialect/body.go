package dialect

import (
	"github.com/sashabaranov/go-openai"
)

// body is a request of both endpoints. go-openai's own types leave out a temperature of 0
// and empty messages, round numbers to float32, and lack fields that servers have.
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

// MaxCompletionTokens is the newer name of the field max_tokens.
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
		b.Logprobs = true
		if r.Messages == nil {
			b.Logprobs = 1
		}
	}
	if r.Choice != nil {
		b.StructuredOutputs = &structuredOutputs{r.Choice}
	}
	if r.Stream {
		b.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	b.structure(r)
	return Merge(b, r.Extra)
}

// answerName is the name of a schema, and of the tool that takes an answer.
const answerName = "answer"

// structure adds what holds the answer to a schema.
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
