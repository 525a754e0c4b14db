package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// reply is a message of a model, as far as it is read.
type reply struct {
	Model       string    `json:"model"`
	Content     []content `json:"content"`
	StopReason  string    `json:"stop_reason"`
	StopDetails struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
	Usage struct {
		Input         float64 `json:"input_tokens"` // without those that were read from the cache, or written to it
		CacheCreation float64 `json:"cache_creation_input_tokens"`
		CacheRead     float64 `json:"cache_read_input_tokens"`
		Output        float64 `json:"output_tokens"`
		Details       struct {
			Thinking float64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// content is a part of a message: a text, a thought, or a tool that is called.
type content struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"` // an object, or as much of one as a stream had as a text
}

// Read implements dialect.Dialect.
func (Dialect) Read(text []byte, r dialect.Request) (dialect.Reply, error) {
	var got reply
	if err := json.Unmarshal(text, &got); err != nil {
		return dialect.Reply{}, err
	}
	u := got.Usage
	read := dialect.Reply{
		Model:         got.Model,
		ThoughtTokens: api.Count(u.Details.Thinking),
		Usage: sdk.Usage{
			InputTokens: api.Count(u.Input + u.CacheCreation + u.CacheRead), CachedTokens: api.Count(u.CacheRead), OutputTokens: api.Count(u.Output),
		},
	}
	if got.Content != nil || got.StopReason != "" {
		read.Choices = []dialect.Choice{got.choice(r)}
	}
	return read, nil
}

// finishes are the reasons to stop in the words of dialect.Choice.
var finishes = map[string]string{
	"end_turn": dialect.FinishStop, "stop_sequence": dialect.FinishStop, "tool_use": dialect.FinishStop,
	"max_tokens": dialect.FinishLength, "model_context_window_exceeded": dialect.FinishLength,
	"pause_turn": dialect.FinishLength, // what was said so far may be enough
}

func (r reply) choice(asked dialect.Request) dialect.Choice {
	c := dialect.Choice{Finish: cmp.Or(finishes[r.StopReason], r.StopReason)}
	arguments := ""
	for _, part := range r.Content {
		c.Text += part.Text
		c.Thoughts += part.Thinking
		if part.Type == "tool_use" && arguments == "" {
			arguments = part.arguments()
		}
	}
	if arguments != "" && (asked.Form == dialect.FormTool || strings.TrimSpace(c.Text) == "") {
		c.Text = arguments
	}
	if r.StopReason == "refusal" {
		c.Finish = dialect.FinishStop
		c.Refusal = cmp.Or(r.StopDetails.Explanation, r.StopDetails.Category, c.Text, "it gives no reason")
	}
	return c
}

// arguments are those of a tool that is called.
func (c content) arguments() string {
	var partial string
	if json.Unmarshal(c.Input, &partial) == nil {
		return partial
	}
	return string(c.Input)
}
