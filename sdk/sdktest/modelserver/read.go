package modelserver

import (
	"encoding/json"
	"fmt"
)

// schema is a JSON schema of an answer, as far as it is read.
type schema struct {
	Type       string   `json:"type"`
	Required   []string `json:"required"`
	Additional *bool    `json:"additionalProperties"`
	Properties map[string]struct {
		Type  string   `json:"type"`
		Enum  []string `json:"enum"`
		Items struct { // of a list
			Enum []string `json:"enum"`
		} `json:"items"`
	} `json:"properties"`
}

// texts is a list of texts, or one.
type texts []string

// UnmarshalJSON reads both forms.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = nil
		if one != "" {
			*t = texts{one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// request is the body of all three endpoints.
type request struct {
	Model               string          `json:"model"`
	Prompt              string          `json:"prompt"`
	Messages            []Message       `json:"messages"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Logprobs            json.RawMessage `json:"logprobs"`
	Stop                texts           `json:"stop"`
	Effort              string          `json:"reasoning_effort"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	StructuredOutputs struct {
		Choice []string `json:"choice"`
	} `json:"structured_outputs"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions"`
	EncodingFormat string   `json:"encoding_format"`
}

// read reads the body; an error of it goes into a.invalid.
func (a *Ask) read() {
	var r request
	if err := json.Unmarshal(a.Body, &r); err != nil {
		a.invalid = "the body: " + err.Error()
		return
	}
	_ = json.Unmarshal(a.Body, &a.sent) // it is an object
	a.Model, a.Prompt, a.Messages, a.N = r.Model, r.Prompt, r.Messages, 1
	if r.N != nil {
		a.N = *r.N
	}
	for _, limit := range []*int{r.MaxTokens, r.MaxCompletionTokens} {
		if limit != nil {
			a.maxTokens = *limit
		}
	}
	a.logprobs = len(r.Logprobs) > 0 && string(r.Logprobs) != "null" && string(r.Logprobs) != "false" && string(r.Logprobs) != "0"
	a.stop, a.effort, a.stream, a.streamUsage = r.Stop, r.Effort, r.Stream, r.StreamOptions.Usage
	marked := 0
	for _, m := range a.Messages {
		if m.Marked {
			marked++
		}
	}
	if marked > 4 { // as Anthropic's endpoint has it
		a.invalid = "cache_control: at most 4 parts may be marked"
	}
	a.Inputs, a.dimensions, a.base64 = r.Input, r.Dimensions, r.EncodingFormat == "base64"
	a.Labels = r.StructuredOutputs.Choice
	a.format = r.ResponseFormat.Type
	switch a.format {
	case "json_schema":
		if !r.ResponseFormat.JSONSchema.Strict || r.ResponseFormat.JSONSchema.Name == "" {
			a.invalid = "json_schema: it must have a name and be strict"
			return
		}
		a.readSchema(r.ResponseFormat.JSONSchema.Schema)
	case "json_object":
		a.Fields = []string{"label"} // the server knows no others
	case "", "text":
	default:
		a.invalid = "response_format: unknown type " + r.ResponseFormat.Type
	}
	if len(r.Tools) > 0 {
		a.tool = r.Tools[0].Function.Name
		a.readSchema(r.Tools[0].Function.Parameters)
	}
}

// readSchema reads a JSON schema and checks it by the rules of strict ones.
func (a *Ask) readSchema(raw json.RawMessage) {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil || s.Type != "object" || s.Additional == nil || *s.Additional || len(s.Required) != len(s.Properties) {
		a.invalid = "json_schema: the root must be an object with all properties required and no additional ones"
		return
	}
	a.Fields, a.schemaText = s.Required, string(raw)
	for name, p := range s.Properties {
		if p.Type == "array" {
			p.Enum = p.Items.Enum
		}
		size := 0
		for _, value := range p.Enum {
			size += len([]rune(value))
		}
		if len(p.Enum) > 1000 || len(p.Enum) > 250 && size > 15000 {
			a.invalid = fmt.Sprintf("json_schema: the enum of %q is too large", name)
		}
		if name == "label" || name == "labels" {
			a.Labels = p.Enum
		}
	}
}
