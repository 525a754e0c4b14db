package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/engine/source"
)

const (
	fewRows   = 5  // a label with fewer has few examples
	fewLabels = 20 // rows below which shares say nothing
	longLabel = 60 // bytes from which on a label looks like a text
)

// counts are how many rows each label has.
func (s *Set) counts() map[string]int {
	all := map[string]int{}
	for _, r := range s.Rows {
		if r.Label != "" {
			all[r.Label]++
		}
	}
	return all
}

// swapped finds columns that were taken for each other: a label for each row, and few texts.
func (s *Set) swapped(labels map[string]int) (f Finding, found bool) {
	texts := map[uint64]bool{}
	labelled := 0
	for _, r := range s.Rows {
		if r.Label != "" {
			texts[r.key] = true
			labelled++
		}
	}
	if labelled < fewLabels || 2*len(labels) <= labelled || 2*len(texts) >= len(labels) {
		return f, false
	}
	return Finding{
		Check: "swapped", Severity: Error, Count: labelled, Rows: s.first(),
		Message: fmt.Sprintf("%s: the columns of text and label seem to be swapped: %s have %d labels, and only %s", s.Name, many(labelled, "row", "rows"), len(labels), many(len(texts), "text", "different texts")),
		Advice:  "take them the other way round: " + source.Mapping{Text: s.Mapping.Label, Label: s.Mapping.Text, Flag: s.Mapping.Flag}.Flags(),
	}, true
}

// first are the first rows.
func (s *Set) first() (all []Place) {
	for _, r := range s.Rows[:min(maxPlaces, len(s.Rows))] {
		all = append(all, r.place(""))
	}
	return all
}

// spelling finds labels that differ only by case or by what separates their words.
func (s *Set) spelling(labels map[string]int) (f Finding, found bool) {
	groups := spellings(labels)
	if len(groups) == 0 {
		return f, false
	}
	f = Finding{
		Check: "spelling", Severity: Error,
		Advice: "write each label in one way; --fix takes the commonest",
	}
	var examples []string
	for _, group := range groups {
		for _, label := range group[1:] {
			f.Count += labels[label]
		}
		if len(examples) < 3 {
			examples = append(examples, fmt.Sprintf("%q beside %q", group[1], group[0]))
		}
	}
	f.Message = fmt.Sprintf("%s: %s only by case or separators: %s", s.Name, many(len(groups), "label is spelt in several ways, which differ", "labels are spelt in several ways, which differ"), strings.Join(examples, ", "))
	to := unified(groups)
	for _, r := range s.Rows {
		if label, ok := to[r.Label]; ok && len(f.Rows) < maxPlaces {
			p := r.place("")
			p.Proposal = label
			f.Rows = append(f.Rows, p)
		}
	}
	return f, true
}

// spellings are the labels that are one but for their spelling, the commonest first.
func spellings(labels map[string]int) [][]string {
	by := map[string][]string{}
	for label := range labels {
		plain := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, label)
		if plain != "" {
			by[plain] = append(by[plain], label)
		}
	}
	var all [][]string
	for _, plain := range slices.Sorted(maps.Keys(by)) {
		group := by[plain]
		if len(group) > 1 {
			slices.SortFunc(group, func(a, b string) int { return cmp.Or(cmp.Compare(labels[b], labels[a]), cmp.Compare(a, b)) })
			all = append(all, group)
		}
	}
	return all
}

// unified says by which label others are to be replaced.
func unified(groups [][]string) map[string]string {
	to := map[string]string{}
	for _, group := range groups {
		for _, label := range group[1:] {
			to[label] = group[0]
		}
	}
	return to
}

// few finds labels with few rows, and those that look like texts.
func (s *Set) few(labels map[string]int) (all []Finding) {
	var rare, long []string
	for label, n := range labels {
		if n < fewRows {
			rare = append(rare, label)
		}
		if len(label) >= longLabel || len(strings.Fields(label)) > 8 {
			long = append(long, label)
		}
	}
	sorted := func(labels []string, counts map[string]int) []string {
		slices.SortFunc(labels, func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b)) })
		return labels
	}
	if len(rare) > 0 {
		all = append(all, Finding{
			Check: "few", Severity: Warning, Count: len(rare), Rows: s.having(sorted(rare, labels)),
			Message: fmt.Sprintf("%s: %s fewer than %d rows, the least %q with %d", s.Name, many(len(rare), "label has", "labels have"), fewRows, short(rare[0]), labels[rare[0]]),
			Advice:  "add examples, or put labels together that need not be told apart",
		})
	}
	if len(long) > 0 && 10*len(long) < len(labels) || len(long) > 0 && len(labels) < 10 {
		all = append(all, Finding{
			Check: "long", Severity: Warning, Count: len(long), Rows: s.having(sorted(long, labels)),
			Message: fmt.Sprintf("%s: %s like a text", s.Name, many(len(long), "label looks", "labels look")),
			Advice:  "see whether columns have slipped in these rows",
		})
	}
	return all
}

// having are the first rows that have one of some labels.
func (s *Set) having(labels []string) (all []Place) {
	wanted := map[string]bool{}
	for _, label := range labels[:min(maxPlaces, len(labels))] {
		wanted[label] = true
	}
	for _, r := range s.Rows {
		if wanted[r.Label] && len(all) < maxPlaces {
			delete(wanted, r.Label)
			all = append(all, r.place(""))
		}
	}
	return all
}

// unknown finds labels of the input that no knowledge has.
func unknown(input *Set, known map[string]int) (f Finding, found bool) {
	missing := map[string]int{}
	labelled := 0
	for _, r := range input.Rows {
		if r.Label != "" {
			labelled++
			if known[r.Label] == 0 {
				missing[r.Label]++
			}
		}
	}
	if len(missing) == 0 || len(known) == 0 {
		return f, false
	}
	labels := slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(cmp.Compare(missing[b], missing[a]), cmp.Compare(a, b))
	})
	for _, n := range missing {
		f.Count += n
	}
	f.Check, f.Severity, f.Rows = "unknown", Info, input.having(labels)
	f.Message = fmt.Sprintf("%s: %s of %d with a label have one that the knowledge does not have, such as %q", input.Name, many(f.Count, "row", "rows"), labelled, short(labels[0]))
	f.Advice = "they count as out of scope: the right answer is none; if that is not meant, add examples of these labels"
	if f.Count == labelled {
		f.Severity = Error
		f.Advice = "no row can be answered right: see whether the label column is the one that is meant (--column label=NAME), and whether labels are spelt alike"
	}
	return f, true
}
