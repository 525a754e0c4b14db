package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// body is a request.
type body struct {
	Model       string        `json:"model"`
	MaxTokens   int           `json:"max_tokens"`
	System      []block       `json:"system,omitempty"`
	Messages    []message     `json:"messages"`
	Temperature *float64      `json:"temperature,omitempty"`
	TopP        *float64      `json:"top_p,omitempty"`
	Stop        []string      `json:"stop_sequences,omitempty"`
	Thinking    *thinking     `json:"thinking,omitempty"`
	Output      *outputConfig `json:"output_config,omitempty"`
	Tools       []tool        `json:"tools,omitempty"`
	ToolChoice  *toolChoice   `json:"tool_choice,omitempty"`
	Stream      bool          `json:"stream,omitempty"`
}

type thinking struct {
	Type   string `json:"type"` // enabled, adaptive, disabled
	Budget int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string  `json:"effort,omitempty"`
	Format *format `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"`
	Alone bool   `json:"disable_parallel_tool_use"`
}

const (
	// unlimited is the limit of an answer that has none: what every model allows, and
	// unlimitedThoughts what every model allows that thinks.
	unlimited, unlimitedThoughts = 4096, 16384
	// leastBudget is the smallest budget of thinking tokens that the API takes.
	leastBudget = 1024
	// answerTool is the name of the tool that takes an answer.
	answerTool = "answer"
)

// Body implements dialect.Dialect.
func (Dialect) Body(r dialect.Request) (any, error) {
	switch {
	case len(r.Messages) == 0:
		return nil, sdk.Invalid(errors.New(`texts are not continued by Anthropic's API; write endpoint = "chat"`))
	case r.Choice != nil:
		return nil, sdk.Invalid(errors.New(`structured = "choice" is vLLM's; write "json_schema" for Anthropic's API`))
	}
	if r.Schema != nil && (r.Form == dialect.FormObject || r.Form == dialect.FormText) {
		r = dialect.Instruct(r)
	}
	b := body{Model: r.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, Stream: r.Stream}
	for _, stop := range r.Stop {
		if strings.TrimSpace(stop) != "" {
			b.Stop = append(b.Stop, stop)
		}
	}
	b.System, b.Messages = split(r.Messages, r.CacheMarks)
	b.think(r.Effort)
	b.structure(r)
	return dialect.Merge(b, r.Extra)
}

// think adds how much the model is to think, and the limit where the request has none.
func (b *body) think(effort string) {
	if effort == "" || effort == "none" {
		if effort != "" {
			b.Thinking = &thinking{Type: "disabled"}
		}
		b.MaxTokens = cmp.Or(b.MaxTokens, unlimited)
		return
	}
	b.Temperature, b.TopP = nil, nil
	b.MaxTokens = cmp.Or(b.MaxTokens, unlimitedThoughts)
	budget, err := strconv.Atoi(effort)
	if err != nil {
		b.Thinking, b.Output = &thinking{Type: "adaptive"}, &outputConfig{Effort: effort}
		return
	}
	b.Thinking = &thinking{Type: "enabled", Budget: max(budget, leastBudget)}
	if b.MaxTokens <= b.Thinking.Budget { // the limit is that of the answer alone
		b.MaxTokens += b.Thinking.Budget
	}
}

// structure adds what holds the answer to a schema.
func (b *body) structure(r dialect.Request) {
	switch {
	case r.Schema == nil:
	case r.Form == dialect.FormSchema:
		if b.Output == nil {
			b.Output = &outputConfig{}
		}
		b.Output.Format = &format{Type: "json_schema", Schema: r.Schema}
	case r.Form == dialect.FormTool:
		b.Tools = []tool{{Name: answerTool, Description: "Takes the answer.", InputSchema: r.Schema}}
		b.ToolChoice = &toolChoice{Type: "tool", Name: answerTool, Alone: true}
		if b.Thinking != nil && b.Thinking.Type != "disabled" {
			b.ToolChoice.Type, b.ToolChoice.Name = "auto", ""
		}
	}
}
