package answer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// maxObjects bounds how many opening braces are tried: a text that opens many objects and
// closes none would take quadratic time.
const maxObjects = 64

// property returns the label in the first JSON object of a text that has one, or the
// reason why there is none.
func property(text string) (label, reason string) {
	reason = fmt.Sprintf("not a JSON object with %q", sdk.LabelProperty)
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
		if raw, ok := object[sdk.LabelProperty]; ok {
			return value(raw)
		}
	}
	return "", reason
}

// value reads a label. A number is taken as it is written.
func value(raw json.RawMessage) (label, reason string) {
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
