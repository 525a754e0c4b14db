package sdk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// LabelForm says how the labels of a knowledge are written. In the zero value, a row has one label,
// which is a name without parts.
type LabelForm struct {
	// Many says that a row has a set of labels, written as JoinLabels does.
	Many bool `json:"many,omitempty"`
	// Levels is the separator between the levels of a label. Such a label is a path in a tree, from
	// the top down: "/" in Agent/Person/Athlete. Empty: labels have no levels.
	Levels string `json:"levels,omitempty"`
}

// LabelSeparator separates the labels of a set. No label of a set contains it.
const LabelSeparator = "; "

// NoLabels is the text of a set without labels. An empty text is no set: nobody knows its labels.
const NoLabels = "[]"

// JoinLabels writes a set of labels as one text: sorted, each label once. It writes an empty set as
// NoLabels. It writes nil, a set that nobody knows, as an empty text.
func JoinLabels(labels []string) string {
	if labels != nil && len(labels) == 0 {
		return NoLabels
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(labels))), LabelSeparator)
}

// Split returns the labels of a set, or the only label. It returns nil for an empty text, and an
// empty list for NoLabels if labels are sets.
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

// Canonical returns a label, or a set of labels, in the form in which labels are compared: in Unicode
// NFC, without blanks and invisible characters at its ends. It writes a set as JoinLabels does,
// without empty labels. A text with only empty labels becomes an empty text.
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

// isInvisible reports whether a character shows nothing: a soft hyphen, a mark of direction, a joiner
// or a space without width, or a byte order mark. Tags of emoji flags do not count: they tell flags
// apart.
func isInvisible(r rune) bool {
	return r == 0xad || r == 0x34f || r == 0x61c || r == 0x180e || r == 0xfeff ||
		r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f
}

// FoldLabel returns the same text for spellings of one label, and different texts for different
// labels. Spellings differ in case, in blanks, in invisible characters, in the Unicode form of a
// character (composed, wide, a dash or an apostrophe of typographers), and in the separator of two
// words: a blank, an underscore or a hyphen. Digits and all other signs tell labels apart: -1 is not
// 1, A- is not A, c# is not c, 1-2 is not 1 2.
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

// plain returns the ASCII form of a dash or an apostrophe, and -1 for a character that shows nothing.
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

// Path returns the nodes of a tree from the top down to the label, which comes last: Agent,
// Agent/Person, Agent/Person/Athlete. Without levels Path returns only the label.
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

// Holds reports whether an answer is right as far as it goes: it equals the expected label or set, or
// is a node above the expected label.
func (f LabelForm) Holds(answer, label string) bool {
	return answer == label || f.Levels != "" && answer != "" && strings.HasPrefix(label, answer+f.Levels)
}

// LabelConfidence is a label of a set, or a node of a tree, with its probability of being right, from
// 0 to 1.
type LabelConfidence struct {
	Label      string  `json:"label"`
	Confidence float64 `json:"confidence"`
}
