package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/source"
)

// copies returns groups of rows with the same text, as positions in the set. Groups and rows are in
// the set's order.
func (s *Set) copies() (groups [][]int) {
	first := make(map[uint64]int, len(s.Rows))
	at := map[uint64]int{} // in groups
	for i, r := range s.Rows {
		if r.Held && r.Label == "" {
			continue
		}
		before, seen := first[r.key]
		if !seen {
			first[r.key] = i
			continue
		}
		n, begun := at[r.key]
		if !begun {
			n = len(groups)
			at[r.key] = n
			groups = append(groups, []int{before})
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// copied finds texts that occur several times in a set, both with one label and with several.
func (s *Set) copied(groups [][]int) (all []Finding) {
	same := Finding{Check: "copies", Severity: Info, Advice: "they count more than others, and change nothing else; --fix leaves one of each"}
	contrary := Finding{Check: "contradiction", Severity: Error, Advice: "decide for one label; --fix marks them"}
	texts := 0
	for _, group := range groups {
		one := s.Rows[group[0]]
		differ := slices.ContainsFunc(group, func(i int) bool { return s.Rows[i].Label != one.Label })
		f := &same
		if differ {
			f = &contrary
			texts++
			f.Count += len(group)
		} else if group = slices.DeleteFunc(slices.Clone(group), func(i int) bool { return s.Rows[i].Held != one.Held }); len(group) > 1 {
			f.Count += len(group) - 1 // copies within the set; a text in both knowledge and input is a leak instead
		} else {
			continue
		}
		for n, i := range group {
			if len(f.Rows) >= maxPlaces || n > 1 && !differ {
				break
			}
			place := s.Rows[i].place("")
			if label := s.Rows[i].Label; label != one.Label {
				place.Note = s.apart("differs in ", one.Label, label)
			}
			f.Rows = append(f.Rows, place)
		}
	}
	if s.documents {
		same.Severity, same.Advice = Warning, "they take each other's place among the passages that are found: exclude one of each"
	}
	if contrary.Count > 0 {
		if 100*contrary.Count < len(s.Rows) {
			contrary.Severity = Warning
		}
		contrary.Message = fmt.Sprintf("%s: %s with different labels, in %s", s.Name, many(texts, "text stands there", "texts stand there"), many(contrary.Count, "row", "rows"))
		all = append(all, contrary)
	}
	if same.Count > 0 {
		same.Message = fmt.Sprintf("%s: %s of others, but for case and spaces", s.Name, many(same.Count, s.unit()+" is a copy", s.unit()+"s are copies"))
		all = append(all, same)
	}
	return all
}

func (s *Set) unit() string {
	if s.documents {
		return "document"
	}
	return "row"
}

// Known counts the labelled rows of the input whose text the knowledge also has. It returns some of
// these rows, their count, and the number of all labelled rows. It ignores rows whose text people
// decided, because such rows are not scored.
func Known(input, knowledge *Set) (some []Place, count, labelled int) {
	has, decided := make(map[uint64]int, len(knowledge.Rows)), map[uint64]bool{}
	for i, r := range knowledge.Rows {
		if r.Held {
			continue
		}
		has[r.key] = i
		if r.Reviewed {
			decided[r.key] = true
		}
	}
	for _, r := range input.Rows {
		if r.Label == "" {
			continue
		}
		labelled++
		if at, ok := has[r.key]; ok && !decided[r.key] {
			count++
			if other := knowledge.Rows[at]; len(some) < maxPlaces {
				some = append(some, r.place(fmt.Sprintf("as %s:%d", other.File, other.Line)))
			}
		}
	}
	return some, count, labelled
}

// known finds labelled rows of the input whose texts the knowledge has: they make figures too good.
func known(input, knowledge *Set) (f Finding, found bool) {
	var labelled int
	if f.Rows, f.Count, labelled = Known(input, knowledge); f.Count == 0 {
		return f, false
	}
	f.Check, f.Severity = "leak", Error
	f.Message = fmt.Sprintf("%d of %s of %s %s in %s", f.Count, many(labelled, "row", "rows"), input.Name, map[bool]string{true: "is", false: "are"}[f.Count == 1], knowledge.Name)
	f.Advice = `measure on rows that the pipeline does not know: part = [0, 0.9] in the source and [0.9, 1] in the input block split one file so`
	if 100*f.Count < labelled { // few enough to be common phrases
		f.Severity = Info
	} else {
		f.Message += ", so figures flatter"
	}
	return f, true
}

// nearTo returns the place of b, with a note that it is nearly the same as a.
func nearTo(a, b Row) Place {
	place := b.place(fmt.Sprintf("nearly %s:%d", a.File, a.Line))
	if place.Line == 0 {
		place.Note = "nearly " + a.File
	} else if a.Label != "" {
		place.Note += fmt.Sprintf(" %q (%s)", short(a.Text), a.Label)
	}
	return place
}

// alike finds texts that are nearly the same: rows of the knowledge with different labels, and rows
// of the input that resemble rows of the knowledge. For documents, it finds all near copies.
func alike(ctx context.Context, knowledge, input *Set) (all []Finding, err error) {
	var texts []string
	for _, r := range knowledge.Rows {
		texts = append(texts, source.Normal(r.Text))
	}
	n := len(texts)
	if input != nil {
		for _, r := range input.Rows {
			texts = append(texts, source.Normal(r.Text))
		}
	}
	row := func(i int) Row {
		if i < n {
			return knowledge.Rows[i]
		}
		return input.Rows[i-n]
	}
	pairs, err := NearPairs(ctx, texts, func(a, b int) bool {
		if row(a).key == row(b).key || a >= n {
			return false
		}
		if b >= n {
			return row(b).Label != "" && !row(a).Held
		}
		return knowledge.documents || row(a).Label != row(b).Label && row(a).Label != "" && row(b).Label != ""
	})
	if err != nil {
		return nil, err
	}
	knowledge.disputed = map[int][]int{}
	inside := Finding{Check: "near", Severity: Warning, Advice: "see whether one of the labels is wrong, or whether both mean the same"}
	if knowledge.documents {
		inside.Advice = "exclude versions of documents that nobody is to find"
	}
	outside := Finding{Check: "near_leak", Severity: Warning, Advice: "measure on rows that were not made from those of the knowledge"}
	seen := map[int]bool{}
	for _, p := range pairs {
		a, b := row(p.A), row(p.B)
		f := &inside
		if p.B >= n {
			f = &outside
			if seen[p.B] {
				continue
			}
			seen[p.B] = true
		} else {
			knowledge.disputed[p.A] = append(knowledge.disputed[p.A], p.B)
			knowledge.disputed[p.B] = append(knowledge.disputed[p.B], p.A)
		}
		if f.Count++; len(f.Rows) < maxPlaces {
			f.Rows = append(f.Rows, nearTo(a, b))
		}
	}
	if inside.Count > 0 {
		what := many(inside.Count, "pair of texts is nearly the same,", "pairs of texts are nearly the same,") + " with different labels"
		if knowledge.documents {
			what = many(inside.Count, "pair of documents is nearly the same", "pairs of documents are nearly the same")
		}
		inside.Message = knowledge.Name + ": " + what
		all = append(all, inside)
	}
	if outside.Count > 0 {
		verb := " are"
		if outside.Count == 1 {
			verb = " is"
		}
		outside.Message = fmt.Sprintf("%s of %s nearly the same as one of %s", many(outside.Count, "row", "rows"), input.Name+verb, knowledge.Name)
		if 100*outside.Count < len(input.Rows) {
			outside.Severity = Info
		}
		all = append(all, outside)
	}
	return all, nil
}
