package sdk

import (
	"slices"
	"strings"
)

// LabelForm says how the labels of a knowledge are written. The zero value: a row has one label,
// which is a name without parts.
type LabelForm struct {
	// Many says that a row has a set of labels, written as JoinLabels does.
	Many bool `json:"many,omitempty"`
	// Levels is what stands between the levels of a label, which is then a path in a tree, from the
	// top down: "/" in Agent/Person/Athlete. Empty: labels have no levels.
	Levels string `json:"levels,omitempty"`
}

// LabelSeparator stands between the labels of a set. No label of a set contains it.
const LabelSeparator = "; "

// JoinLabels writes a set of labels as one text: sorted, each once.
func JoinLabels(labels []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(labels))), LabelSeparator)
}

// Split returns the labels of a set, or the only label. An empty text has none.
func (f LabelForm) Split(labels string) []string {
	switch {
	case labels == "":
		return nil
	case f.Many:
		return strings.Split(labels, LabelSeparator)
	}
	return []string{labels}
}

// Canonical returns labels that a person wrote as JoinLabels writes them: it trims each label of a
// set, and leaves out empty ones. It returns the only label as it is.
func (f LabelForm) Canonical(labels string) string {
	if !f.Many {
		return labels
	}
	all := strings.Split(labels, LabelSeparator)
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return JoinLabels(slices.DeleteFunc(all, func(l string) bool { return l == "" }))
}

// Path returns the nodes of a tree from the top down to the label, which is the last one:
// Agent, Agent/Person, Agent/Person/Athlete. Without levels it is the label alone.
func (f LabelForm) Path(label string) []string {
	var nodes []string
	for at := 0; f.Levels != "" && at < len(label); {
		next := strings.Index(label[at:], f.Levels)
		if next < 0 {
			break
		}
		nodes = append(nodes, label[:at+next])
		at += next + len(f.Levels)
	}
	return append(nodes, label)
}

// Holds reports whether an answer is right as far as it goes, where label is what was expected: it
// is the same label or set, or a node above the label.
func (f LabelForm) Holds(answer, label string) bool {
	return answer == label || f.Levels != "" && answer != "" && strings.HasPrefix(label, answer+f.Levels)
}

// LabelConfidence is a label of a set, or a node of a tree, with the probability that it is right,
// from 0 to 1.
type LabelConfidence struct {
	Label      string  `json:"label"`
	Confidence float64 `json:"confidence"`
}
