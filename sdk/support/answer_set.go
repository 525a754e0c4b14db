package support

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file reads sets of labels (AnswerOptions.Many), in one line or in several.

// members returns the answers for a set of labels, allowed labels first. "No label fits", or an empty
// set as examples write it, counts only if there is no label.
func members(labels []foundLabel, allowed []string) []sdk.Answer {
	var all, others []sdk.Answer
	seen := map[string]bool{"": true, sdk.NoLabels: true}
	for _, l := range labels {
		a := sdk.Answer{Label: l.label, Weight: 1, Reading: l.reading}
		switch {
		case seen[l.label]:
		case len(allowed) > 0 && !slices.Contains(allowed, l.label):
			a.Reason = "it is none of the allowed labels"
			others = append(others, a)
		default:
			all = append(all, a)
		}
		seen[l.label] = true
	}
	if all == nil && slices.ContainsFunc(labels, func(l foundLabel) bool { return l.label == "" || l.label == sdk.NoLabels }) {
		all = []sdk.Answer{{Weight: 1}}
	}
	return append(all, others...)
}

// set reads the lines of a text that name labels, as long as they follow each other: a model that
// continues a text may write more. If no line names a label, set reads the first line. It reads at
// most maxLabels lines, and at most maxLabels parts of a line.
func (r *reader) set(text string) (read reading) {
	known, over, n := false, false, 0
	lines(text, func(from, to int) {
		if n++; over || n > maxLabels || len(read.labels) >= maxLabels {
			return
		}
		line := r.parts(text[from:to], ";,")
		switch knows := r.knows(line); {
		case knows && known:
			read.labels = append(read.labels, line.labels...)
		case knows || read.labels == nil:
			read, known = line, knows
		default:
			over = known
		}
	})
	return read
}

// parts divides a line of labels at the first of the separators, and each part at the others. A label
// that contains a separator stays whole. If any label is allowed, a comma may be part of a label.
func (r *reader) parts(line, separators string) (read reading) {
	r.folds() // once for all parts
	one := &reader{AnswerOptions: r.AnswerOptions, names: r.names}
	one.Many = false
	if separators == "" || separators == "," && !r.maps() {
		if read = one.text(line); read.reason != "" {
			read = reading{labels: []foundLabel{{label: strings.TrimSpace(line)}}}
		}
		return read
	}
	one.Nearest = 0
	if whole := one.text(line); one.knows(whole) {
		return whole
	}
	for part := range strings.SplitSeq(line, separators[:1]) {
		if strings.TrimSpace(part) != "" && len(read.labels) < maxLabels {
			read.labels = append(read.labels, r.parts(part, separators[1:]).labels...)
		}
	}
	if read.labels == nil { // nothing but separators
		read.labels = []foundLabel{{label: strings.TrimSpace(line)}}
	}
	return read
}
