package answer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// fold returns the same for texts that differ in case, in the width of their letters (as
// East Asian scripts have them), in composed or combining accents, and in spaces,
// underscores and hyphens between words. It leaves letters in their script, and those
// compatibility forms that mean something: a² is not a2. Between digits a separator stays
// one, and at the ends an underscore or hyphen stays as it is: 1-2 is not 12, -1 is not 1,
// and A- is not A.
func fold(text string) string {
	// Through the upper case, which unites more forms of a letter, such as the two of sigma.
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, squeeze(text))
}

// squeeze is fold without the case.
func squeeze(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			text = norm.NFC.String(width.Fold.String(text))
			break
		}
	}
	var b strings.Builder
	b.Grow(len(text))
	last := rune(-1) // before the separators
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !separates(r) {
			b.WriteRune(r)
			last = r
			i += size
			continue
		}
		end := i + len(text[i:])
		next := rune(-1)
		if n := strings.IndexFunc(text[i:], func(r rune) bool { return !separates(r) }); n >= 0 {
			end = i + n
			next, _ = utf8.DecodeRuneInString(text[end:])
		}
		switch {
		case last < 0 || next < 0:
			b.WriteString(strings.Join(strings.Fields(text[i:end]), ""))
		case unicode.IsDigit(last) && unicode.IsDigit(next):
			b.WriteByte(' ')
		}
		i = end
	}
	return b.String()
}

func separates(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r == '_' || r == '-' || r >= '\t' && r <= '\r'
	}
	return r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Hyphen, r)
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
	if name, ok = n.folds()[folded]; !ok || name == ambiguous || folded == "" {
		return "", "", false
	}
	switch {
	case strings.EqualFold(name, text):
		return name, "case", true
	case squeeze(name) == squeeze(text):
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
