package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Form says how the set's labels are written.
func (s *Set) Form() sdk.LabelForm { return s.Mapping.Labels.LabelForm }

// Labels returns the labels of the rows, sorted.
func (s *Set) Labels() []string { return slices.Sorted(maps.Keys(s.counts(false))) }

// respelt returns a label, or a set of labels, in the commonest spelling (unified).
func (s *Set) respelt(label string, to map[string]string) string {
	labels := s.Form().Split(label)
	for i, one := range labels {
		labels[i] = cmp.Or(to[one], one)
	}
	return sdk.JoinLabels(labels)
}

// apart lists the labels that only one of two label sets has; empty: rows have one label.
func (s *Set) apart(before, a, b string) string {
	if !s.Form().Many {
		return ""
	}
	var names []string
	in, other := s.Form().Split(a), s.Form().Split(b)
	for _, label := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(in, other)))) {
		if slices.Contains(in, label) != slices.Contains(other, label) {
			names = append(names, fmt.Sprintf("%q", label))
		}
	}
	return before + strings.Join(names, ", ")
}
