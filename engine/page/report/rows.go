package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal"
)

// one is what the table has of an item.
type one struct {
	line                       int
	id, text, expected, answer string
	sure                       float64
	state                      string // letters, see oneOf
}

const (
	mostRows = 50_000 // that a page lists
	mostText = 240    // characters of a text in the table
)

// oneOf is the row of an item. Its state is made of letters: e it failed, w wrong, r right,
// f flagged, n no answer, d decided by a
// person, p lacks a voter, u not reached.
func oneOf(b *explain.Brief, scored, right bool) one {
	o := one{line: b.Line, id: b.ID, text: beginning(b.Text), expected: b.Expected, answer: beginning(string(b.Answer)), sure: cmp.Or(b.Confidence, b.Agreement)}
	if len(b.Candidates) > 0 && o.answer == "" {
		o.answer = beginning(b.Candidates[0].Text)
	}
	for _, state := range []struct {
		letter string
		is     bool
	}{
		{"e", b.Error != nil}, {"w", scored && !right && b.Error == nil}, {"r", scored && right}, {"f", b.Flagged},
		{"n", b.Answer == "" && b.Error == nil && len(b.Candidates) == 0 && b.Status != journal.Unreached}, {"d", b.Decided != nil}, {"p", b.Status == journal.Provisional}, {"u", b.Status == journal.Unreached},
	} {
		if state.is {
			o.state += state.letter
		}
	}
	return o
}

func (o one) is(letter string) bool { return strings.Contains(o.state, letter) }

// notable reports whether a person may want to look at the item.
func (o one) notable() bool { return o.rank() < plain }

const plain = 4 // the rank of items that ask for no look

// rank says how early in the table an item comes.
func (o one) rank() int {
	switch {
	case o.is("e"):
		return 0
	case o.is("w") && !o.is("f"):
		return 1
	case o.is("f"), o.is("n"):
		return 2
	case o.is("p"):
		return 3
	case o.is("u"):
		return plain + 1
	}
	return plain
}

// listed are the items of the table: those that failed, then wrong ones that nobody was
// warned of, the surest first, then flagged ones, the most doubtful first, then the others as
// they stand in the input.
func listed(items []one) []one {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b one) int {
		order := cmp.Compare(a.rank(), b.rank())
		switch {
		case order != 0 || a.rank() > 2:
		case a.rank() == 1:
			order = cmp.Compare(b.sure, a.sure)
		case a.rank() == 2:
			order = cmp.Compare(a.sure, b.sure)
		}
		return order
	})
	return items[:min(len(items), mostRows)]
}

// columns are rows as the page gets them.
func columns(list []one, kept *details) map[string]any {
	lines, ids, texts, expected, answers, sure, states, at := []int{}, []string{}, []string{}, []string{}, []string{}, []float64{}, []string{}, []int{}
	for _, o := range list {
		lines, ids, texts, expected, answers = append(lines, o.line), append(ids, o.id), append(texts, o.text), append(expected, o.expected), append(answers, o.answer)
		sure, states, at = append(sure, o.sure), append(states, o.state), append(at, kept.place(o.line))
	}
	return map[string]any{"line": lines, "id": ids, "text": texts, "expected": expected, "answer": answers, "sure": sure, "state": states, "at": at}
}

// beginning cuts a text for the table.
func beginning(text string) string { return cut(text, mostText) }

// cut returns at most so many characters of a text.
func cut(text string, most int) string {
	n := 0
	for at := range text {
		if n++; n > most {
			return text[:at] + "…"
		}
	}
	return text
}
