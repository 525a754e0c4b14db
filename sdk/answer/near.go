package answer

import (
	"strings"
	"unicode"
)

// nearest returns the one name with the greatest F1 of its words and a text's,
// if that is at least enough. It is the F1 by which answers to SQuAD are
// scored (Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for
// Machine Comprehension of Text", EMNLP 2016, section 6.1), except that
// articles count, too, and that a label's words may be joined by any character
// that is neither letter nor digit.
func nearest(text string, names []string, enough float64) (found string, ok bool) {
	given := words(text)
	best := 0.0
	for _, name := range names {
		switch score := f1(given, words(name)); {
		case score > best:
			found, ok, best = name, true, score
		case score == best && name != found:
			ok = false
		}
	}
	return found, ok && best >= enough
}

func words(text string) []string {
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
