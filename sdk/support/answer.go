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

// This file reads the texts of language models. A text holds a label in a line or in a JSON object,
// or a list of labels; the reader may take the nearest allowed label. With passages, it is a text of
// any length that cites numbered passages.
//
// Models do not write labels exactly as they should. If a prompt says which labels are allowed, the
// reader reads a text as people would:
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
// The model's thoughts are no part of its answer, under any of the usual tags, closed or not. The
// same holds for the channels of open-weight models, except the final one. If the label was not read
// letter by letter, the answer's Reading says how. Sentences (This is clearly a case of x) are not
// read.
//
// The reader maps no text that may mean something else: two labels, a label that is denied, struck
// out or part of a longer word, a question, letters that only look like the letters of a label. A
// prefix counts only if no other label stands in the whole text. A check mark or a box counts only
// if, in addition, nothing else in the text denies or hedges. JSON that was cut off counts only with
// the end of its label. Letters stay in their script. Wide and composed forms of a letter equal the
// usual ones; other compatibility forms (a², 𝐚) do not.
//
// A text that cannot be an answer gives a Reason and no label. A label that is not allowed stays as
// it was written: accept rules decide about it, so that no answer is replaced by a guess. A text that
// cites no passage, or a passage that was not given, is no answer. The package does not check whether
// the passages support the text.

// AnswerOptions say how to read the text of a model. The zero Options read it as people would.
type AnswerOptions struct {
	// Exact accepts a label only as it is written, at the beginning of the text.
	Exact bool
	// Nearest replaces a text that is no label by the nearest label: the one with the greatest F1 of
	// its words and the text's, if that F1 is at least Nearest. Nearest is between 0 and 1, and 0 is
	// off. A text that is equally near to two labels stays as it is.
	Nearest float64
	// Reasons stores the texts of the other properties of a JSON object in the answer's Explanation.
	Reasons bool
	// Many reads a set of labels (sdk.LabelForm): a list in JSON, or labels separated by semicolons,
	// commas or line breaks.
	Many bool
}

// ReadAnswer returns the answer that a model's text gives to a prompt, with weight 1.
//
// The answer to a prompt without Fields is a line: the text up to the first newline after its first
// word. The answer to a prompt with Fields is a JSON object, of which only sdk.LabelProperty counts;
// text and code fences around it are skipped. The model's thoughts are no part of its answer. A text
// equal to the prompt's None gives an answer without a label, a vote for no label. From a list of
// labels, ReadAnswer returns the first: see ReadAnswers.
//
// Unless Options are Exact, a text that is none of the prompt's Labels is read as described at the
// top of this file, if it can mean only one label. The answer's Reading says how it was read.
//
// The answer to a prompt with Passages is the whole text, line breaks included, if it cites passages,
// and only existing ones: see Citations. A text without citations becomes the label, with NoCitation
// as its Reason. Options do not count then, and None may come with a full stop, quotes, emphasis and
// citations.
func ReadAnswer(text string, p sdk.Prompt, o AnswerOptions) sdk.Answer {
	return ReadAnswers(text, p, o)[0]
}

// ReadAnswers returns all answers that a model's text gives to a prompt, best first. There is one, as
// ReadAnswer returns it, unless the prompt's Fields have sdk.LabelsProperty. Then there is an answer
// for each label of the list, with weights 1, 1/2, 1/3 and so on. A repeated label counts at its
// first position. An empty list gives one answer without a label.
//
// With Options.Many, there is an answer for each label of the set, each with weight 1. Labels that
// the prompt does not allow come last, with a Reason.
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

// AnswerSpan returns the position of the label in a text, in bytes. If the text is no label, it
// returns the position of the line. Both results are 0 if there is no label, and for a list of
// labels.
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

// Reasons of texts that are no answer. Other packages compare with these constants.
const (
	NoAnswer = "the model wrote nothing"
	CutOff   = "the answer was cut off; raise max_tokens" // a reader of texts cannot see this
	// NoCitation is the reason of an answer to a prompt with passages whose text is the label.
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

// bare returns a sentence without the quotes, emphasis and full stop around it.
func bare(text string) string {
	return strings.Join(strings.Fields(strings.Trim(text, " \t\r\n.!\"'`*_“”„«»")), " ")
}

func refused(reason string) sdk.Answer { return sdk.Answer{Weight: 1, Reason: reason} }

// fold is sdk.FoldLabel without the separators between words, since models leave them out:
// InvoiceRequest. Between digits a separator stays, as one blank.
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

// letters returns the letters of a text, in their case and in the form that fold gives them.
func letters(text string) string {
	return strings.Join(wordsOf(norm.NFC.String(width.Fold.String(text))), "")
}

// names holds the allowed answers of a prompt: its labels and its None.
type names struct {
	labels  []string
	none    string
	byFold  map[string]string // the value is ambiguous if two names have this fold
	longest int               // bytes of the longest name
}

// ambiguous cannot be a name: prompts show labels on one line.
const ambiguous = "\n"

// exact returns the name that equals a text letter by letter.
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
		// Prompts show a label on one line, so the model writes it with single spaces.
		if len(label) >= len(text) && strings.ContainsFunc(label, unicode.IsSpace) {
			if line := strings.Join(strings.Fields(label), " "); line != label && line == text {
				return label, true
			}
		}
	}
	return "", false
}

// same returns the name that equals a text except for what fold ignores, if there is only one such
// name. how describes the difference.
func (n *names) same(text string) (name, how string, ok bool) {
	folded := fold(text)
	if name, ok = n.folds()[folded]; ok && name == ambiguous {
		name, ok = n.exact(norm.NFC.String(text)) // two names may differ in nothing but composed accents
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

// wordsOf returns the runs of letters, digits and marks in a text.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWordPart(r) })
}

func isWordPart(r rune) bool { return isWord(r) || unicode.IsMark(r) }

// longestName returns the most bytes that a name may take in a text, which may have wide letters and
// more separators.
func (n *names) longestName() int {
	n.folds()
	return 3*n.longest + 3
}

// others reports whether another name stands in a text, as whole words.
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
		for folded, other := range folds { // names with characters that are no part of a word
			if other != name && strings.ContainsFunc(folded, func(r rune) bool { return !isWordPart(r) }) && strings.Contains(whole, folded) {
				return true
			}
		}
	}
	return false
}

// join joins the folds of two words.
func join(a, b string) string {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	if unicode.IsDigit(last) && unicode.IsDigit(first) {
		return a + " " + b
	}
	return a + b
}

// cutOut replaces parts that were removed from a text.
const cutOut = "\x00"

// nearest returns the only name with the greatest F1 of its words and a text's, if that F1 is at
// least enough. It is the F1 with which SQuAD scores answers (Rajpurkar, Zhang, Lopyrev, Liang,
// "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016, section 6.1), with two
// differences. Articles count, too. Any character that is neither letter nor digit may join the words
// of a label.
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

// f1 returns the harmonic mean of precision and recall of the words in answer a, if b is right. A
// word counts as often as both have it.
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

// foundLabel is a label found in a text.
type foundLabel struct {
	label    string // "": that none fits
	from, to int    // its position
	reading  string
}

// reading is the result of reading a text.
type reading struct {
	labels      []foundLabel
	explanation string
	reason      string // why it is no answer; empty: it is one
}

func unreadable(reason string) reading { return reading{reason: reason} }

// severalLabels is the reason of a text that could mean any of several labels.
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

// maps reports whether a text may be read as a label that it does not equal letter by letter.
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

// as returns the reading of a part of a text as a name.
func (r *reader) as(f foundLabel, name, how string) reading {
	if f.label, f.reading = name, how; name == r.none {
		f.label = ""
	}
	return reading{labels: []foundLabel{f}}
}

// close replaces a text that is no label by the nearest label if Options want that. Otherwise the
// text stays as it is.
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

// firstLine returns the first line from a position on that is not empty.
func firstLine(text string, at int) (from, to int) {
	from, _ = trim(text, at, len(text))
	to = len(text)
	if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
		to = from + n
	}
	return trim(text, from, to)
}

// lines calls f with the position of each line of a text that is not empty.
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

// Limits on what surrounds a label.
const (
	maxPeels  = 6  // quotes, elements and other wrappers
	maxAround = 64 // bytes by which a text with a label may be longer than the longest label
)

// match returns the name that a part of a text stands for, and the name's position. It removes quotes
// and a full stop if needed. raw is the text with its markup.
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

// plain reads a text as people would: its first line without markup, quotes and the like, or a label
// behind a prefix.
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

// another reports whether a line of a text is another name than the given one.
func (r *reader) another(raw, text, name string) bool {
	is := false
	lines(raw, func(from, to int) {
		f, ok := r.match(raw, text, from, to)
		is = is || ok && f.label != name
	})
	return is
}
