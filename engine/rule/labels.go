package rule

import "slices"

// LabelSet is the labels of a knowledge: a list for rules that walk it and a
// set, so that `answer in labels` costs the same for ten labels and for a
// hundred thousand. Make it once per knowledge; it is read-only afterwards.
type LabelSet struct {
	sorted []string
	set    map[string]struct{}
}

// NewLabelSet makes the set of the given labels, without empty and repeated ones.
func NewLabelSet(labels []string) *LabelSet {
	l := &LabelSet{set: make(map[string]struct{}, len(labels))}
	for _, label := range labels {
		if label != "" {
			l.set[label] = struct{}{}
		}
	}
	l.sorted = make([]string, 0, len(l.set))
	for label := range l.set {
		l.sorted = append(l.sorted, label)
	}
	slices.Sort(l.sorted)
	return l
}

// Sorted returns the labels in order. The caller must not change them.
func (l *LabelSet) Sorted() []string {
	if l == nil {
		return nil
	}
	return l.sorted
}

// Has reports whether label is one of them.
func (l *LabelSet) Has(label string) bool {
	if l == nil {
		return false
	}
	_, ok := l.set[label]
	return ok
}
