package decide

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// This file converts JSON to texts. An object with a field text becomes an item; its other fields are metadata, for
// prompts and rules. A conversation becomes the content of its last message of the role user. From any other value, all
// strings and numbers become the text, one per line, without the names of fields.

// itemOf returns the item of a state.
func itemOf(state json.RawMessage) (workspace.Item, error) {
	switch kindOf(state) {
	case '{':
		var fields result.Fields
		if err := json.Unmarshal(state, &fields); err != nil {
			return workspace.Item{}, err
		}
		item := workspace.Item{Meta: sdk.Meta{}}
		for _, f := range fields {
			text, isText := f.Value.(string)
			raw, nested := f.Value.(json.RawMessage)
			switch {
			case isText && f.Name == "text":
				item.Text = text
			case isText && f.Name == "id":
				item.ID = text
			case nested && f.Name == "messages":
				if said, ok := lastOf(raw); ok {
					item.Text = said
				}
			case nested:
				var value any
				if err := json.Unmarshal(raw, &value); err != nil {
					return item, err
				}
				item.Meta[f.Name] = value
			default:
				item.Meta[f.Name] = plain(f.Value)
			}
		}
		if item.Text != "" {
			return item, nil
		}
	case '[':
		if said, ok := lastOf(state); ok {
			return workspace.Item{Text: said}, nil
		}
	}
	return workspace.Item{Text: flat(state)}, nil
}

// plain converts a value for metadata: numbers become float64.
func plain(value any) any {
	if n, ok := value.(json.Number); ok {
		value, _ = n.Float64()
	}
	return value
}

// lastOf returns the content of a conversation's last message of the role user; ok: it is a conversation.
func lastOf(raw json.RawMessage) (text string, ok bool) {
	var all []struct {
		Role    string
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &all) != nil {
		return "", false
	}
	for _, m := range all {
		if m.Role == "user" {
			text, ok = flat(m.Content), true
		}
	}
	return text, ok
}

// kindOf returns the first byte of a JSON value: one of {["tfn, or a number's; 0: there is none.
func kindOf(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// flat returns the strings and numbers of a JSON value, a line each.
func flat(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var lines []string
	type level struct{ object, value bool } // value: the next string is a value, not a name
	var open []level
	for {
		token, err := dec.Token()
		if err != nil {
			return strings.Join(lines, "\n")
		}
		var in *level
		if len(open) > 0 {
			in = &open[len(open)-1]
		}
		isName := in != nil && in.object && !in.value
		if in != nil {
			in.value = !in.value
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				open = append(open, level{object: t == '{'})
			} else {
				open = open[:len(open)-1]
			}
		case string:
			if !isName {
				lines = append(lines, t)
			}
		case json.Number:
			lines = append(lines, t.String())
		}
	}
}

// wording returns instructions or a description as a text, and the label that it names by {"label": ...}.
func wording(raw json.RawMessage) (text, label string) {
	var parts []struct {
		Type, Text string
		Data       json.RawMessage
	}
	var named struct{ Label string }
	if kindOf(raw) == '{' && json.Unmarshal(raw, &named) == nil {
		label = named.Label
	}
	if kindOf(raw) != '[' || json.Unmarshal(raw, &parts) != nil {
		return flat(raw), label
	}
	var lines []string
	for _, p := range parts {
		switch p.Type {
		case "input_text":
			lines = append(lines, p.Text)
		case "input_json":
			more, its := wording(p.Data)
			if lines = append(lines, more); its != "" {
				label = its
			}
		default:
			return flat(raw), label
		}
	}
	return strings.Join(lines, "\n"), label
}
