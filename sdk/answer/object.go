package answer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// maxObjects bounds how many opening braces are tried: a text that opens many objects and
// closes none would take quadratic time.
const maxObjects = 64

// labelsIn returns the label, or the list of labels, in the first JSON object of a text
// that has the property for it; or the reason why there is none.
func labelsIn(text string, p sdk.Prompt) (labels []string, reason string) {
	name, read := sdk.LabelProperty, one
	if slices.Contains(p.Fields, sdk.LabelsProperty) {
		name, read = sdk.LabelsProperty, list
	}
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
		if raw, ok := object[name]; ok {
			return read(raw)
		}
	}
	return nil, fmt.Sprintf("not a JSON object with %q", name)
}

func one(raw json.RawMessage) ([]string, string) {
	label, reason := value(raw, sdk.LabelProperty)
	return []string{label}, reason
}

// maxLabels bounds how many labels of a list are read.
const maxLabels = 100

// list reads labels. A null is no list: the model may not have meant that none fits.
func list(raw json.RawMessage) (labels []string, reason string) {
	var values []json.RawMessage
	if json.Unmarshal(raw, &values) != nil || values == nil {
		return nil, fmt.Sprintf("%q in the JSON object is not a list", sdk.LabelsProperty)
	}
	for _, raw := range values[:min(len(values), maxLabels)] {
		label, reason := value(raw, sdk.LabelsProperty)
		if reason != "" {
			return nil, reason
		}
		labels = append(labels, label)
	}
	return labels, ""
}

// value reads a label of a property. A number is taken as it is written.
func value(raw json.RawMessage, name string) (label, reason string) {
	var number json.Number
	if json.Unmarshal(raw, &label) != nil {
		if json.Unmarshal(raw, &number) != nil {
			return "", fmt.Sprintf("%q in the JSON object is not a text", name)
		}
		label = number.String()
	}
	if label = strings.TrimSpace(label); label == "" {
		return "", fmt.Sprintf("%q in the JSON object is empty", name)
	}
	return label, ""
}
