package anthropic

import (
	"encoding/json"
	"maps"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// event is one of a stream
// (https://docs.anthropic.com/en/docs/build-with-claude/streaming).
type event struct {
	Type    string                     `json:"type"`
	Message map[string]json.RawMessage `json:"message"` // message_start: the message without its content
	Index   int                        `json:"index"`
	Block   map[string]any             `json:"content_block"` // content_block_start
	Delta   struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Input    string `json:"partial_json"`
	} `json:"delta"`
	Usage map[string]json.RawMessage `json:"usage"` // message_delta: counts of all so far
}

// Join implements dialect.Dialect.
func (Dialect) Join(stream []byte) ([]byte, error) {
	var joined map[string]json.RawMessage
	var blocks []map[string]any
	usage, ended := map[string]json.RawMessage{}, false
	for data := range dialect.Events(stream) {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, dialect.ErrBrokenOff
		}
		switch e.Type {
		case "error":
			return data, nil // as a reply that is an error
		case "message_start":
			joined = e.Message
			var begun map[string]json.RawMessage
			_ = json.Unmarshal(joined["usage"], &begun) // another form: none
			maps.Copy(usage, begun)
		case "content_block_start":
			if e.Block == nil {
				return nil, dialect.ErrBrokenOff
			}
			delete(e.Block, "input") // it is still empty
			blocks = append(blocks, e.Block)
		case "content_block_delta":
			if e.Index < 0 || e.Index >= len(blocks) {
				return nil, dialect.ErrBrokenOff
			}
			extend(blocks[e.Index], "text", e.Delta.Text)
			extend(blocks[e.Index], "thinking", e.Delta.Thinking)
			extend(blocks[e.Index], "input", e.Delta.Input)
		case "message_delta":
			var m struct {
				Delta map[string]json.RawMessage `json:"delta"`
			}
			_ = json.Unmarshal(data, &m) // it was JSON above
			if joined == nil {
				return nil, dialect.ErrBrokenOff
			}
			maps.Copy(joined, m.Delta)
			for name, value := range e.Usage {
				if string(value) != "null" {
					usage[name] = value
				}
			}
		case "message_stop":
			ended = joined != nil
		}
	}
	if !ended {
		return nil, dialect.ErrBrokenOff
	}
	var err error
	if joined["content"], err = json.Marshal(blocks); err == nil {
		joined["usage"], err = json.Marshal(usage)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(joined)
}

// extend adds to a text of a block.
func extend(block map[string]any, name, text string) {
	if text != "" {
		before, _ := block[name].(string)
		block[name] = before + text
	}
}
