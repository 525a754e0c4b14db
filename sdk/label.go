package sdk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
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

// NoLabels is how a set without labels is written. An empty text is no set: nobody knows its labels.
const NoLabels = "[]"

// JoinLabels writes a set of labels as one text: sorted, each once. It writes a set that has none as NoLabels, and
// nil, a set that nobody knows, as an empty text.
func JoinLabels(labels []string) string {
	if labels != nil && len(labels) == 0 {
		return NoLabels
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(labels))), LabelSeparator)
}

// Split returns the labels of a set, or the only label. Of an empty text it returns nil, and of NoLabels, where labels
// are sets, a list that is empty.
func (f LabelForm) Split(labels string) []string {
	switch {
	case labels == "":
		return nil
	case f.Many && labels == NoLabels:
		return []string{}
	case f.Many:
		return strings.Split(labels, LabelSeparator)
	}
	return []string{labels}
}

// Canonical returns a label, or a set of them, as it is compared: in Unicode NFC, without blanks and invisible
// characters at its ends. It writes a set as JoinLabels does, without empty labels; a text that has no others is empty.
func (f LabelForm) Canonical(labels string) string {
	if !f.Many {
		return strings.TrimFunc(norm.NFC.String(labels), func(r rune) bool { return unicode.IsSpace(r) || isInvisible(r) })
	}
	all := strings.Split(labels, LabelSeparator)
	for i := range all {
		all[i] = LabelForm{}.Canonical(all[i])
	}
	if all = slices.DeleteFunc(all, func(l string) bool { return l == "" }); len(all) == 0 {
		return ""
	}
	return JoinLabels(all)
}

// isInvisible reports whether a character shows nothing: a soft hyphen, a mark of direction, a joiner or a space
// without width, or a byte order mark. The tags of emoji flags are not among them: they tell flags apart.
func isInvisible(r rune) bool {
	return r == 0xad || r == 0x34f || r == 0x61c || r == 0x180e || r == 0xfeff ||
		r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f
}

// FoldLabel returns the same text for spellings of one label, and different texts for different labels. Spellings
// differ in case, in blanks, in invisible characters, in the Unicode form of a character (composed, wide, a dash or
// an apostrophe of typographers), and in what stands between two words: a blank, an underscore or a hyphen. Digits and
// all other signs tell labels apart: -1 is not 1, A- is not A, c# is not c, 1-2 is not 1 2.
func FoldLabel(label string) string {
	if strings.ContainsFunc(label, func(r rune) bool { return r >= utf8.RuneSelf }) {
		label = strings.Map(plain, norm.NFC.String(width.Fold.String(label)))
	}
	label = strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, label) // the upper case unites more forms of a letter, such as the two of sigma
	all := []rune(strings.Join(strings.Fields(label), " "))
	out := make([]rune, 0, len(all))
	for from := 0; from < len(all); {
		to := from + 1
		if !separates(all[from]) {
			out = append(out, all[from])
			from = to
			continue
		}
		for to < len(all) && separates(all[to]) {
			to++
		}
		between, signs := all[from:to], strings.ReplaceAll(string(all[from:to]), " ", "")
		words := from > 0 && to < len(all) && isWord(all[from-1]) && isWord(all[to])
		digits := words && unicode.IsDigit(all[from-1]) && unicode.IsDigit(all[to])
		several, last := len(between) > 1, between[len(between)-1]
		if words && (signs == "" || !digits && !(several && between[0] == '-') && !(several && last == '-' && unicode.IsDigit(all[to]))) {
			signs = " " // else it is a sign, as of A- film and at -1, or the blanks are beside one and mean nothing
		}
		out = append(out, []rune(signs)...)
		from = to
	}
	return string(out)
}

// plain returns the ASCII form of a dash or an apostrophe, and -1 for what shows nothing.
func plain(r rune) rune {
	switch {
	case isInvisible(r), unicode.Is(unicode.Variation_Selector, r):
		return -1
	case unicode.Is(unicode.Dash, r):
		return '-'
	case r == '’', r == '‘', r == 'ʼ':
		return '\''
	}
	return r
}

func separates(r rune) bool { return r == ' ' || r == '-' || r == '_' }

// isWord reports whether a character is a part of a word.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

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
