package support

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/racflow/racflow/sdk"
)

// This file reads the texts of language models: the label in a line of text or in a
// JSON object, or a list of labels there, and optionally the allowed label that is nearest to it; or a text of any
// length that cites numbered passages.
//
// Models do not write labels as they are asked to. Where a prompt says which labels are allowed,
// a text is read as people would read it:
//
//	**label**, `label`, ## label, - label, "label".    without markup, quotes, full stop
//	Invoice Request, invoice-request                   case and separators
//	Label: x, Answer - x, the label is x.              without prefix
//	``` fences, <answer>x</answer>, a list of one      from a fence, an element, a list
//	✅ label, \boxed{label}                            without check mark, LaTeX
//	{"Label": "x"}, {"intent": "x"}, a tool call       from another property, a tool call
//	{"label": "x",}, {"label": "x", "why": "y          repaired: a comma too many, no end
//	JSON for a line, a line for JSON                   from JSON, from text
//
// What a model thought aloud is no part of its answer, under any of the usual tags, closed or
// not, nor is what open-weight models write in channels but the final one. How a label was
// read, if not letter by letter, is in the answer's Reading. Sentences (This is clearly a case of x) are
// not read.
//
// NoAnswer is read that may mean something else: two labels, one that is denied, struck out or
// part of a longer word, a question, a text whose letters only look like those of a label.
// A prefix counts only where no other label stands in the whole text; a check mark and a box
// count only where nothing else in it denies or hedges, either. JSON that was cut
// off counts only with the end of its label. Letters stay in their script; wide and composed
// forms of a letter are one with the usual ones, and other compatibility forms (a², 𝐚) are not.
//
// A text that cannot be an answer gives a Reason and no label. A label that is not
// among the allowed ones stays as it was written: accept rules decide about it, so that
// no answer is replaced by a guess. A text that cites a passage which was not given, or
// none at all, is no answer. The package does not check whether the passages support
// what the text claims.

// AnswerOptions say how the text of a model is read. The zero Options read it as people would.
type AnswerOptions struct {
	// Exact takes labels only as they are written, at the beginning of the text.
	Exact bool
	// Nearest takes a text that is no label for the label with the greatest F1 of its
	// words and the text's, if that is at least this: between 0 and 1, 0 is off. A text
	// as near to two labels stays as it is.
	Nearest float64
	// Reasons keeps the texts of the other properties of a JSON object as the answer's
	// Explanation.
	Reasons bool
	// Many reads a set of labels (sdk.LabelForm): a list in JSON, or labels with semicolons, commas
	// or line breaks between them.
	Many bool
}

// ReadAnswer returns the answer that a model's text holds to a prompt, with weight 1.
//
// A prompt without Fields is answered by a line: the text up to the first newline behind
// its first word. One with Fields is answered by a JSON object, of which only
// sdk.LabelProperty counts; text and code fences around it are skipped. What a model
// thought aloud is no part of its answer. A text equal to the prompt's None gives an
// answer without a label, a vote for none of them. Of a list of labels it returns the
// first: see ReadAll.
//
// Unless Options are Exact, a text that is no label of the prompt's Labels is read as
// the package's documentation says, if it can mean only one of them. How it was read
// is in the answer's Reading.
//
// A prompt with Passages is answered by the whole text, line breaks included, if it
// cites passages, and only those that exist: see Citations. One that cites none has the text as its
// label, and NoCitation as its Reason. Options do not count then, and None may come with a full stop, quotes, emphasis and citations.
func ReadAnswer(text string, p sdk.Prompt, o AnswerOptions) sdk.Answer {
	return ReadAnswers(text, p, o)[0]
}

// ReadAnswers returns all answers that a model's text holds to a prompt, best first. There is
// one, as Read returns it, unless the prompt's Fields have sdk.LabelsProperty: then there
// is one for each label of the list, and they weigh 1, 1/2, 1/3 and so on. A label that
// the list repeats counts where it first stands. An empty list gives one answer without a
// label.
//
// With Options.Many there is one for each label of the set, and each weighs 1. Labels that the prompt
// does not allow come last, with a Reason.
func ReadAnswers(text string, p sdk.Prompt, o AnswerOptions) []sdk.Answer {
	if p.Passages != nil {
		if text = strings.TrimSpace(text[Thoughts(text):]); text == "" {
			return []sdk.Answer{refused(NoAnswer)}
		}
		return []sdk.Answer{cited(text, p)}
	}
	read := newReader(p, o).read(text)
	if read.reason != "" {
		return []sdk.Answer{refused(read.reason)}
	}
	if len(read.labels) == 0 {
		return []sdk.Answer{{Weight: 1, Explanation: read.explanation}}
	}
	var all []sdk.Answer
	seen := map[string]bool{}
	if o.Many {
		all = members(read.labels, p.Labels)
		read.labels = nil
	}
	for _, l := range read.labels {
		if !seen[l.label] {
			seen[l.label] = true
			all = append(all, sdk.Answer{Label: l.label, Weight: 1 / float64(len(all)+1), Reading: l.reading})
		}
	}
	all[0].Explanation = read.explanation
	return all
}

// AnswerSpan returns where in a text its label stands, in bytes, as Read reads it: of what is
// no label, the line. Both are 0 where there is none, and for a list of labels.
func AnswerSpan(text string, p sdk.Prompt, o AnswerOptions) (from, to int) {
	r := newReader(p, o)
	if p.Passages != nil || r.lists() {
		return 0, 0
	}
	if read := r.read(text); read.reason == "" && len(read.labels) > 0 {
		return read.labels[0].from, read.labels[0].to
	}
	return 0, 0
}

// Reasons of texts that are no answer, which other packages know them by.
const (
	NoAnswer = "the model wrote nothing"
	CutOff   = "the answer was cut off; raise max_tokens" // which a reader of texts cannot see
	// NoCitation is the reason of an answer to a prompt with passages, whose label is the text.
	NoCitation = "it cites none of the passages"
)

// cited reads the answer to a prompt with passages.
func cited(text string, p sdk.Prompt) sdk.Answer {
	if p.None != "" && strings.EqualFold(bare(bracket().ReplaceAllString(text, "")), bare(p.None)) {
		return sdk.Answer{Weight: 1}
	}
	numbers, stray := Citations(text, len(p.Passages))
	switch {
	case len(p.Passages) == 0: // no citations are wanted
	case stray != "":
		return refused(fmt.Sprintf("it cites [%s], which is none of the passages that it was given", stray))
	case len(numbers) == 0:
		return sdk.Answer{Label: text, Weight: 1, Reason: NoCitation}
	case !strings.ContainsFunc(bracket().ReplaceAllString(text, ""), isWord):
		return refused("it cites passages and says nothing")
	}
	return sdk.Answer{Label: text, Weight: 1}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// bare is a sentence without the quotes, emphasis and full stop around it.
func bare(text string) string {
	return strings.Join(strings.Fields(strings.Trim(text, " \t\r\n.!\"'`*_“”„«»")), " ")
}

func refused(reason string) sdk.Answer { return sdk.Answer{Weight: 1, Reason: reason} }

// fold is sdk.FoldLabel without what still stands between words, which models leave out: InvoiceRequest. Between digits
// it stays, as one blank.
func fold(text string) string {
	all := []rune(sdk.FoldLabel(text))
	out := all[:0:0]
	for i, r := range all {
		inside := i > 0 && i+1 < len(all)
		switch digits := inside && unicode.IsDigit(all[i-1]) && unicode.IsDigit(all[i+1]); {
		case digits && (r == '-' || r == '_'):
			r = ' '
		case r == ' ' && !digits:
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

// letters are those of a text, in their case and in the form that fold gives them.
func letters(text string) string {
	return strings.Join(wordsOf(norm.NFC.String(width.Fold.String(text))), "")
}

// names are what a prompt allows: its labels and its None.
type names struct {
	labels  []string
	none    string
	byFold  map[string]string // ambiguous: two names have it
	longest int               // bytes of a name
}

// ambiguous is no name: prompts show labels on one line.
const ambiguous = "\n"

// exact returns the name that a text is, letter by letter.
func (n *names) exact(text string) (name string, ok bool) {
	if n.none != "" && text == n.none {
		return n.none, true
	}
	for _, label := range n.labels {
		if label == text {
			return label, true
		}
	}
	for _, label := range n.labels {
		// Prompts show labels on one line, so the model writes it with single spaces.
		if len(label) >= len(text) && strings.ContainsFunc(label, unicode.IsSpace) {
			if line := strings.Join(strings.Fields(label), " "); line != label && line == text {
				return label, true
			}
		}
	}
	return "", false
}

// same returns the one name that differs from a text only in what fold unites, and says how.
func (n *names) same(text string) (name, how string, ok bool) {
	folded := fold(text)
	if name, ok = n.folds()[folded]; ok && name == ambiguous {
		name, ok = n.exact(norm.NFC.String(text)) // one of them may differ in nothing but composed accents
	}
	if !ok || folded == "" {
		return "", "", false
	}
	switch {
	case strings.EqualFold(name, text):
		return name, "case", true
	case letters(name) == letters(text):
		return name, "separators", true
	}
	return name, "case and separators", true
}

func (n *names) folds() map[string]string {
	if n.byFold != nil {
		return n.byFold
	}
	n.byFold = make(map[string]string, len(n.labels)+1)
	add := func(name string) {
		folded := fold(name)
		if other, ok := n.byFold[folded]; ok && other != name {
			name = ambiguous
		}
		n.byFold[folded] = name
		n.longest = max(n.longest, len(name), len(folded))
	}
	for _, label := range n.labels {
		add(label)
	}
	if n.none != "" {
		add(n.none)
	}
	return n.byFold
}

// wordsOf are the runs of letters, digits and marks in a text.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWordPart(r) })
}

func isWordPart(r rune) bool { return isWord(r) || unicode.IsMark(r) }

// longestName is how many bytes a name may take in a text, which may have wide letters and
// more separators.
func (n *names) longestName() int {
	n.folds()
	return 3*n.longest + 3
}

// others reports whether another name than this one stands in a text, as whole words.
func (n *names) others(text, name string) bool {
	folds := n.folds()
	for part := range strings.SplitSeq(text, cutOut) {
		words := wordsOf(part)
		for i := range words {
			words[i] = fold(words[i])
		}
		for i := range words {
			joined := ""
			for to := i; to < len(words) && len(joined) <= n.longest; to++ {
				joined = join(joined, words[to])
				if other, ok := folds[joined]; ok && other != name {
					return true
				}
			}
		}
		whole := fold(part)
		for folded, other := range folds { // names that are not words alone
			if other != name && strings.ContainsFunc(folded, func(r rune) bool { return !isWordPart(r) }) && strings.Contains(whole, folded) {
				return true
			}
		}
	}
	return false
}

// join joins what fold makes of two words.
func join(a, b string) string {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	if unicode.IsDigit(last) && unicode.IsDigit(first) {
		return a + " " + b
	}
	return a + b
}

// cutOut stands in a text for what has been taken out of it.
const cutOut = "\x00"

// nearest returns the one name with the greatest F1 of its words and a text's,
// if that is at least enough. It is the F1 by which answers to SQuAD are
// scored (Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for
// Machine Comprehension of Text", EMNLP 2016, section 6.1), except that
// articles count, too, and that a label's words may be joined by any character
// that is neither letter nor digit.
func nearest(text string, names []string, enough float64) (found string, ok bool) {
	given := Words(text)
	best := 0.0
	for _, name := range names {
		switch score := f1(given, Words(name)); {
		case score > best:
			found, ok, best = name, true, score
		case score == best && name != found:
			ok = false
		}
	}
	return found, ok && best >= enough
}

// Words returns the words of a text, in lower case and without punctuation.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// f1 is the harmonic mean of precision and recall of the words in a as an answer where b
// is right. A word counts as often as both have it.
func f1(a, b []string) float64 {
	left := make(map[string]int, len(b))
	for _, w := range b {
		left[w]++
	}
	common := 0
	for _, w := range a {
		if left[w] > 0 {
			left[w]--
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}

// foundLabel is a label in a text.
type foundLabel struct {
	label    string // "": that none fits
	from, to int    // where it stands
	reading  string
}

// reading is what a text says.
type reading struct {
	labels      []foundLabel
	explanation string
	reason      string // why it is no answer; empty: it is one
}

func unreadable(reason string) reading { return reading{reason: reason} }

// severalLabels is the reason of a text that could mean any of them.
const severalLabels = "it names several labels"

// reader reads the answers to a prompt.
type reader struct {
	AnswerOptions
	fields []string
	names
}

func newReader(p sdk.Prompt, o AnswerOptions) *reader {
	return &reader{AnswerOptions: o, fields: p.Fields, names: names{labels: p.Labels, none: p.None}}
}

// maps reports whether a text may be taken for a label that it is not letter by letter.
func (r *reader) maps() bool { return !r.Exact && len(r.labels) > 0 }

// read reads a whole text.
func (r *reader) read(text string) reading {
	text = written(text)
	if strings.TrimSpace(text) == "" {
		return unreadable(NoAnswer)
	}
	if r.fields != nil {
		return r.object(text)
	}
	return r.text(text)
}

// text reads the answer to a prompt that asks for a line.
func (r *reader) text(text string) reading {
	if r.Many {
		if read, ok := r.inObject(text); ok && r.maps() {
			return read.how("from JSON")
		}
		return r.set(text)
	}
	from, to := firstLine(text, 0)
	line := foundLabel{label: text[from:to], from: from, to: to}
	if name, ok := r.exact(line.label); ok {
		if r.maps() && r.list(text) {
			return unreadable(severalLabels)
		}
		return r.as(line, name, "")
	}
	if r.maps() {
		if read, ok := r.plain(text); ok {
			return read
		}
		if read, ok := r.inObject(text); ok {
			return read.how("from JSON")
		}
	}
	return r.close(line)
}

// as is the reading of a part of a text as a name.
func (r *reader) as(f foundLabel, name, how string) reading {
	if f.label, f.reading = name, how; name == r.none {
		f.label = ""
	}
	return reading{labels: []foundLabel{f}}
}

// close reads a text that is no label as the nearest one, where Options want that, or
// leaves it as it is.
func (r *reader) close(f foundLabel) reading {
	if r.Nearest > 0 {
		all := r.labels
		if r.none != "" {
			all = append(all[:len(all):len(all)], r.none)
		}
		if name, ok := nearest(f.label, all, r.Nearest); ok {
			return r.as(f, name, "nearest")
		}
	}
	return reading{labels: []foundLabel{f}}
}

// firstLine returns the first line from a place on that is not empty.
func firstLine(text string, at int) (from, to int) {
	from, _ = trim(text, at, len(text))
	to = len(text)
	if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
		to = from + n
	}
	return trim(text, from, to)
}

// lines calls f with where the lines of a text stand that are not empty.
func lines(text string, f func(from, to int)) {
	for at := 0; ; {
		from, to := firstLine(text, at)
		if from == to {
			return
		}
		f(from, to)
		at = to
	}
}

// The most that a label is found in: pairs of quotes and the like, and bytes more than the
// longest label.
const (
	maxPeels  = 6
	maxAround = 64
)

// match returns the name that a part of a text stands for, if need be without quotes and a full
// stop, and where it stands. raw is the text with its markup.
func (r *reader) match(raw, text string, from, to int) (f foundLabel, ok bool) {
	var how []string
	if from, to = trim(raw, from, to); from < to {
		if name, ok := r.exact(raw[from:to]); ok {
			return foundLabel{name, from, to, ""}, true
		}
	}
	start, end := trim(text, from, to)
	if start != from || end != to || raw[start:end] != text[start:end] {
		how = append(how, "without markup")
	}
	from, to = start, end
	for range maxPeels {
		if from, to = trim(text, from, to); from == to || to-from > r.longestName()+maxAround {
			break
		}
		part := text[from:to]
		name, ok := r.exact(part)
		if !ok {
			var folded string
			if name, folded, ok = r.same(part); ok {
				how = append(how, folded)
			}
		}
		if ok {
			return foundLabel{name, from, to, strings.Join(how, ", ")}, true
		}
		a, b, what, ok := peel(part)
		if !ok {
			break
		}
		if from, to = from+a, from+b; !slices.Contains(how, "without "+what) {
			how = append(how, "without "+what)
		}
	}
	return foundLabel{}, false
}

// plain reads a text as people would: its first line with markup, quotes and the like, or a
// label behind a prefix.
func (r *reader) plain(raw string) (reading, bool) {
	text, how := raw, ""
	from, to := trim(text, 0, len(text))
	for range maxPeels { // <answer>label</answer>
		m := element().FindStringSubmatchIndex(text[from:to])
		if m == nil || text[from+m[2]:from+m[3]] != text[from+m[6]:from+m[7]] || denies(text[from+m[2]:from+m[3]]) {
			break
		}
		from, to = trim(text, from+m[4], from+m[5])
		how = "from an element"
	}
	out := []byte(text)
	space(out[:from])
	space(out[to:])
	for _, m := range fenceLine().FindAllSubmatchIndex(out, -1) {
		if _, ok := r.folds()[fold(text[m[2]:m[3]])]; !ok || m[2] == m[3] {
			space(out[m[0]:m[1]])
			how = "from a fence"
		}
	}
	raw = string(out)
	lines(raw, func(from, to int) { copy(out[from:], unmark(raw[from:to])) })
	text = string(out)
	if from, to = firstLine(raw, 0); from == to {
		return reading{}, false
	}
	f, ok := r.match(raw, text, from, to)
	if ok = ok && !marked().MatchString(text[from:to]); ok {
		if r.another(raw, text, f.label) {
			return unreadable(severalLabels), true
		}
	} else if f, ok = r.prefixed(raw, text); !ok {
		return reading{}, false
	}
	return r.as(f, f.label, strings.Trim(how+", "+f.reading, ", ")), true
}

// list reports whether all lines of a text are labels, and not all the same.
func (r *reader) list(text string) bool {
	all, seen := true, map[string]bool{}
	lines(text, func(from, to int) {
		f, ok := r.match(text, text, from, to)
		all = all && ok
		seen[f.label] = true
	})
	return all && len(seen) > 1
}

// another reports whether a line of a text is another name than this.
func (r *reader) another(raw, text, name string) bool {
	is := false
	lines(raw, func(from, to int) {
		f, ok := r.match(raw, text, from, to)
		is = is || ok && f.label != name
	})
	return is
}
