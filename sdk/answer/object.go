package answer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// maxObjects bounds how many opening braces are tried: a text that opens many
// objects and closes none would take time in the square of its length.
const maxObjects = 64

// property returns the label in the first JSON object of a text that has one,
// or what is wrong.
func property(text string) (label, fault string) {
	fault = fmt.Sprintf("not a JSON object with %q", sdk.LabelProperty)
	from := 0
	for range maxObjects {
		at := strings.IndexByte(text[from:], '{')
		if at < 0 {
			break
		}
		from += at + 1
		var object map[string]json.RawMessage
		if json.NewDecoder(strings.NewReader(text[from-1:])).Decode(&object) != nil {
			continue
		}
		raw, ok := object[sdk.LabelProperty]
		if !ok {
			continue
		}
		return value(raw)
	}
	return "", fault
}

// value reads a label. A number is taken as it is written.
func value(raw json.RawMessage) (label, fault string) {
	var number json.Number
	if json.Unmarshal(raw, &label) != nil {
		if json.Unmarshal(raw, &number) != nil {
			return "", fmt.Sprintf("%q in the JSON object is not a text", sdk.LabelProperty)
		}
		label = number.String()
	}
	if label = strings.TrimSpace(label); label == "" {
		return "", fmt.Sprintf("%q in the JSON object is empty", sdk.LabelProperty)
	}
	return label, ""
}
