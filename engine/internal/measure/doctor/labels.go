package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Doubt is a row that a person should look at, with all findings of the last look.
type Doubt struct {
	Row      int      // of the set
	Severity Severity // of the worst finding
	Why      []string // a sentence for each finding, without a full stop
	Labels   []string // other labels that may be right
	Copy     bool     // an earlier row has the same text and label
	Sure     float64  // share of the votes for another label, 0 to 1; 0: voters were not asked
	Relabel  string   // the label that can replace the row's own without review; empty: a person should decide
}

// Doubts returns the rows of a checked set whose label or presence a person can correct, in the
// order of the set. It leaves out rows that people decided.
func Doubts(s *Set) []Doubt {
	all := doubts{s, map[int]*Doubt{}}
	labels := s.counts(true)
	to, alike := unified(spellings(labels, nil, sdk.FoldLabel)), unified(lookalikes(labels, nil))
	for i, row := range s.Rows {
		for _, label := range s.Form().Split(row.Label) {
			if usual, ok := to[label]; ok {
				all.add(i, Error, fmt.Sprintf("the label is spelt %q in more rows", usual), usual).Relabel = s.respelt(row.Label, to)
			}
			if other, ok := alike[label]; ok {
				all.add(i, Warning, fmt.Sprintf("the label%s looks like %q%s of more rows", scripts(label), other, scripts(other)), other)
			}
		}
	}
	contrary := all.copies(to)
	for i, others := range s.disputed {
		for _, other := range others {
			of := s.Rows[other]
			all.add(i, Warning, fmt.Sprintf("nearly the same as %s:%d %q, which has the label %q%s", of.File, of.Line, short(of.Text), of.Label, s.apart(", which differs in ", s.Rows[i].Label, of.Label)), of.Label)
		}
	}
	for _, found := range s.suspected {
		d := all.add(found.row, Warning, "voters that have not seen it: "+found.why(), found.Label)
		if d.Sure = found.Share; found.Relabel && !contrary[found.row] && len(s.disputed[found.row]) == 0 {
			d.Relabel = s.respelt(found.Label, to)
		}
	}
	var list []Doubt
	for _, d := range all.byRow {
		if !s.Rows[d.Row].Reviewed {
			list = append(list, *d)
		}
	}
	slices.SortFunc(list, func(a, b Doubt) int { return cmp.Compare(a.Row, b.Row) })
	return list
}

// doubts collects the doubts about the rows of a set.
type doubts struct {
	set   *Set
	byRow map[int]*Doubt
}

// add adds a finding to the doubts about a row.
func (l doubts) add(row int, severity Severity, why string, labels ...string) *Doubt {
	d := l.byRow[row]
	if d == nil {
		d = &Doubt{Row: row, Severity: Info}
		l.byRow[row] = d
	}
	if slices.Index(severities, severity) < slices.Index(severities, d.Severity) {
		d.Severity = severity
	}
	if !slices.Contains(d.Why, why) {
		d.Why = append(d.Why, why)
	}
	form := l.set.Form()
	own := form.Split(l.set.Rows[row].Label)
	for _, label := range labels {
		for _, one := range form.Split(label) {
			if !slices.Contains(own, one) && !slices.Contains(d.Labels, one) {
				d.Labels = append(d.Labels, one)
			}
		}
	}
	return d
}

// copies adds rows whose text occurs in other rows, and returns the rows whose text also has another label.
// Several spellings count as one label.
func (l doubts) copies(to map[string]string) (contrary map[int]bool) {
	contrary = map[int]bool{}
	for _, group := range l.set.copies() {
		first := map[string]int{} // rows, by label
		var labels []string
		for _, i := range group {
			label := l.set.respelt(l.set.Rows[i].Label, to)
			if _, seen := first[label]; !seen {
				first[label] = i
				labels = append(labels, label)
			}
		}
		for _, i := range group {
			own := l.set.respelt(l.set.Rows[i].Label, to)
			for _, label := range labels {
				switch of := l.set.Rows[first[label]]; {
				case label != own:
					contrary[i] = true
					why := fmt.Sprintf("the same text has the label %q in %s:%d%s", label, of.File, of.Line, l.set.apart(", which differs in ", own, label))
					l.add(i, Error, why, label)
				case first[label] != i && of.Held == l.set.Rows[i].Held:
					l.add(i, Info, fmt.Sprintf("a copy of %s:%d", of.File, of.Line)).Copy = true
				}
			}
		}
	}
	return contrary
}

const (
	fewRows   = 5  // a label with fewer rows has few examples
	fewLabels = 20 // with fewer labelled rows, shares say nothing
)

// counts returns the number of rows of each label in the knowledge; held also counts held-out rows.
func (s *Set) counts(held bool) map[string]int {
	all := map[string]int{}
	for _, r := range s.Rows {
		if r.Held && !held {
			continue
		}
		for _, label := range s.Form().Split(r.Label) {
			all[label]++
		}
	}
	return all
}

// swapped finds swapped columns: nearly every row has its own label, and there are few texts.
func (s *Set) swapped(labels map[string]int) (f Finding, found bool) {
	texts := map[uint64]bool{}
	labelled := 0
	for _, r := range s.Rows {
		if r.Label != "" && !r.Held {
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

func (s *Set) first() (all []Place) {
	for _, r := range s.Rows[:min(maxPlaces, len(s.Rows))] {
		all = append(all, r.place(""))
	}
	return all
}

// spelling finds different spellings of one label, in the set and the input, and labels that look
// alike.
func (s *Set) spelling(input *Set, r *Report) {
	labels, more := s.counts(true), map[string]int{}
	rows := s.Rows
	if input != nil {
		more, rows = input.counts(true), slices.Concat(rows, input.Rows)
	}
	add := func(f Finding, groups [][]string, one, several string) {
		if len(groups) == 0 {
			return
		}
		var examples []string
		for _, group := range groups {
			for _, label := range group[1:] {
				f.Count += cmp.Or(labels[label], more[label])
			}
			if len(examples) < 3 {
				examples = append(examples, fmt.Sprintf("%q%s beside %q%s", group[1], scripts(group[1]), group[0], scripts(group[0])))
			}
		}
		f.Message = fmt.Sprintf("%s: %s: %s", s.Name, many(len(groups), one, several), strings.Join(examples, ", "))
		to := unified(groups)
		for _, row := range rows { // held-out rows are in the input, too
			p := row.place("")
			if p.Proposal = s.respelt(row.Label, to); p.Proposal != row.Label && len(f.Rows) < maxPlaces && !slices.Contains(f.Rows, p) {
				f.Rows = append(f.Rows, p)
			}
		}
		r.add(f)
	}
	add(Finding{Check: "spelling", Severity: Error, Advice: "write each label in one way; --fix takes the commonest"}, spellings(labels, more, sdk.FoldLabel),
		"label is spelt in several ways, which differ only by case or separators", "labels are spelt in several ways, which differ only by case or separators")
	add(Finding{Check: "lookalike", Severity: Warning, Advice: "see whether one label is meant, and write it in one way; --fix marks the rows"}, lookalikes(labels, more),
		"label looks like another", "labels look like others")
}

// spellings groups the labels that fold makes equal. A group begins with the commonest label of the set,
// then of the input.
func spellings(labels, more map[string]int, fold func(string) string) [][]string {
	by := map[string][]string{}
	for _, of := range []map[string]int{labels, more} {
		for label := range of {
			if folded := fold(label); folded != "" && !slices.Contains(by[folded], label) {
				by[folded] = append(by[folded], label)
			}
		}
	}
	var all [][]string
	for _, folded := range slices.Sorted(maps.Keys(by)) {
		group := by[folded]
		if len(group) > 1 {
			slices.SortFunc(group, func(a, b string) int {
				return cmp.Or(cmp.Compare(labels[b], labels[a]), cmp.Compare(more[b], more[a]), cmp.Compare(a, b))
			})
			all = append(all, group)
		}
	}
	return all
}

// lookalikes groups different labels that look the same, the commonest first.
func lookalikes(labels, more map[string]int) (all [][]string) {
	for _, group := range spellings(labels, more, appearance) {
		first := sdk.FoldLabel(group[0])
		if group = slices.DeleteFunc(group, func(l string) bool { return l != group[0] && sdk.FoldLabel(l) == first }); len(group) > 1 {
			all = append(all, group)
		}
	}
	return all
}

// Cyrillic and Greek letters that look like Latin letters, and these Latin letters, as in Unicode's
// confusables.txt.
const (
	confusable = "АВЕЅІЈКМНОРСТУХҮԌԚԜ" + "аеѕіјорсухүһԁԛԝӏ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "αινορυχ"
	latin      = "ABESIJKMHOPCTYXYGQW" + "aesijopcyxyhdqwl" + "ABEZHIKMNOPTYX" + "aivopux"
)

// appearance returns a label with lookalike letters replaced by Latin letters, without surrounding quotes and a full
// stop at the end.
func appearance(label string) string {
	label = strings.Map(func(r rune) rune {
		if at := strings.IndexRune(confusable, r); at >= 0 {
			return rune(latin[at/len("А")]) // each has two bytes
		}
		return r
	}, label)
	label = strings.Trim(label, `"'`+"`“”„«»‘’")
	if bare := strings.TrimSuffix(label, "."); len(bare) > 1 && !strings.HasSuffix(bare, ".") {
		if last, _ := utf8.DecodeLastRuneInString(bare); unicode.IsLetter(last) {
			label = bare
		}
	}
	return sdk.FoldLabel(label)
}

// scripts lists, in brackets, the letters of a label that look like Latin letters but belong to other scripts;
// empty: none.
func scripts(label string) string {
	var named []string
	for _, r := range label {
		if strings.ContainsRune(confusable, r) && len(named) < 3 {
			named = append(named, fmt.Sprintf("%c %U %s", r, r, map[bool]string{true: "Greek", false: "Cyrillic"}[unicode.Is(unicode.Greek, r)]))
		}
	}
	if named == nil {
		return ""
	}
	return " (with " + strings.Join(slices.Compact(named), ", ") + ")"
}

// unified maps the labels of each group to the group's commonest label, which replaces them.
func unified(groups [][]string) map[string]string {
	to := map[string]string{}
	for _, group := range groups {
		for _, label := range group[1:] {
			to[label] = group[0]
		}
	}
	return to
}

// few finds labels with few rows.
func (s *Set) few(labels map[string]int) (f Finding, found bool) {
	var rare []string
	for label, n := range labels {
		if n < fewRows {
			rare = append(rare, label)
		}
	}
	if len(rare) == 0 {
		return f, false
	}
	slices.SortFunc(rare, func(a, b string) int { return cmp.Or(cmp.Compare(labels[a], labels[b]), cmp.Compare(a, b)) })
	return Finding{
		Check: "few", Severity: Warning, Count: len(rare), Rows: s.having(rare),
		Message: fmt.Sprintf("%s: %s fewer than %d rows, the least %q with %d", s.Name, many(len(rare), "label has", "labels have"), fewRows, short(rare[0]), labels[rare[0]]),
		Advice:  "add examples, or put labels together that need not be told apart; see whether columns have slipped where a label looks like a text",
	}, true
}

// having returns the first row of each of some labels.
func (s *Set) having(labels []string) (all []Place) {
	wanted := map[string]bool{}
	for _, label := range labels[:min(maxPlaces, len(labels))] {
		wanted[label] = true
	}
	for _, r := range s.Rows {
		for _, label := range s.Form().Split(r.Label) {
			if wanted[label] {
				delete(wanted, label)
				all = append(all, r.place(""))
			}
		}
	}
	return all
}

// unknown finds labels of the input that the knowledge does not have.
func unknown(input *Set, known map[string]int) (f Finding, found bool) {
	missing := map[string]int{}
	labelled := 0
	for _, r := range input.Rows {
		if r.Label == "" {
			continue
		}
		labelled++
		lacks := false
		for _, label := range input.Form().Split(r.Label) {
			if known[label] == 0 {
				missing[label]++
				lacks = true
			}
		}
		if lacks {
			f.Count++
		}
	}
	if len(missing) == 0 || len(known) == 0 {
		return f, false
	}
	labels := slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(cmp.Compare(missing[b], missing[a]), cmp.Compare(a, b))
	})
	f.Check, f.Severity, f.Rows = "unknown", Info, input.having(labels)
	f.Message = fmt.Sprintf("%s: %s of %d with a label have one that the knowledge does not have, such as %q", input.Name, many(f.Count, "row", "rows"), labelled, short(labels[0]))
	f.Advice = "they count as out of scope: the right answer is none; if that is not meant, add examples of these labels"
	if input.Form().Many {
		f.Advice = "no answer has these labels: add examples of them"
	}
	if f.Count == labelled {
		f.Severity = Error
		f.Advice = "no row can be answered right: see whether the label column is the one that is meant (--column label=NAME), and whether labels are spelt alike"
	}
	return f, true
}

// suspect is a row for which voters that have not seen it prefer another label.
type suspect struct {
	Suspect
	row int // of the set
}

// suspects adds the rows that voters contradict.
func (k *Source) suspects(ctx context.Context, r *Report) {
	votes, err := k.Votes(ctx)
	if err != nil {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: labels were not checked by votes: %v", k.Name, err))
		return
	}
	r.Voted += len(votes)
	if len(votes) < fewVotes {
		return // too few rows: shares say nothing
	}
	found := k.join(votes)
	if len(found) == 0 {
		return
	}
	expected := 0.
	for _, s := range found {
		expected += s.Wrong / float64(len(found))
	}
	f := Finding{
		Check: "suspect", Severity: Warning, Count: len(found), Expected: expected,
		Message: fmt.Sprintf("%s: %s probably a wrong label, of %d that were checked: voters that have not seen the row contradict it; %.0f %% of these labels are expected to be wrong", k.Name, many(len(found), "row has", "rows have"), len(votes), 100*expected),
		Advice:  "look at them; --fix FILE writes a copy in which each is marked, and those that are nearly certain are relabelled",
	}
	for _, s := range found[:min(maxPlaces, len(found))] {
		p := k.Rows[s.row].place(s.why())
		p.Proposal = s.Label
		f.Rows = append(f.Rows, p)
	}
	k.Set.suspected = found
	r.add(f)
}

func (s suspect) why() string {
	return fmt.Sprintf("%s %.2f, its own label %.2f, %.0f %% likely wrong", s.Label, s.Share, s.Self, 100*s.Wrong)
}

// join finds the set's rows that the votes belong to.
func (s *Set) join(votes []VotedRow) []suspect {
	at := make(map[[2]string]int, len(s.Rows))
	for i, row := range s.Rows {
		if !row.Held {
			at[[2]string{row.Text, s.Renames.In(s.Form(), row.Label)}] = i
		}
	}
	var all []suspect
	for _, found := range suspects(votes) {
		v := votes[found.Row]
		if i, ok := at[[2]string{v.Text, v.Label}]; ok {
			all = append(all, suspect{found, i})
		}
	}
	return all
}

const fewVotes = 20

const (
	minLong = 200  // bytes: embedders cut no shorter text
	same    = 1e-6 // squared distance below which vectors are equal
)

// cut finds texts whose end the embedder ignores: such a text has the same vector without its last
// tenth. cut finds the longest length that the embedder reads by bisection, so that it embeds few
// texts.
func (k *Source) cut(ctx context.Context, r *Report) {
	var long []int
	for i, row := range k.Rows {
		if len(row.Text) >= minLong {
			long = append(long, i)
		}
	}
	slices.SortFunc(long, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(k.Rows[a].Text), len(k.Rows[b].Text)), cmp.Compare(a, b))
	})
	var failed error
	from, _ := slices.BinarySearchFunc(long, true, func(i int, _ bool) int {
		is, err := k.unseen(ctx, k.Rows[i].Text)
		failed = cmp.Or(failed, err)
		if is {
			return 1
		}
		return -1
	})
	if failed != nil {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: it was not checked whether the embedder cuts texts: %v", k.Name, failed))
		return
	}
	if from == len(long) {
		return
	}
	f := Finding{
		Check: "cut", Severity: Warning, Count: len(long) - from,
		Message: fmt.Sprintf("%s: about %s too long for the embedder, which does not see their ends: from about %d bytes on", k.Name, many(len(long)-from, "text is", "texts are"), len(k.Rows[long[from]].Text)),
		Advice:  "cut them with a chunk block, or take an embedder that reads more",
	}
	for _, i := range slices.Backward(long[max(from, len(long)-maxPlaces):]) {
		f.Rows = append(f.Rows, k.Rows[i].place(fmt.Sprintf("%d bytes", len(k.Rows[i].Text))))
	}
	r.add(f)
}

// unseen reports whether the end of a text makes no difference to its vector.
func (k *Source) unseen(ctx context.Context, text string) (bool, error) {
	end := len(text) * 9 / 10
	for !utf8.RuneStart(text[end]) {
		end--
	}
	vectors, err := k.Embed(ctx, []string{text, text[:end]})
	if err != nil || len(vectors) != 2 {
		return false, err
	}
	distance := 0.
	for i, x := range vectors[0] {
		d := float64(x - vectors[1][i])
		distance += d * d
	}
	return distance < same, nil
}
