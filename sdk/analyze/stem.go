package analyze

import "strings"

// stem takes the endings of inflection and derivation from an English word in
// lower case: the algorithm of M. F. Porter, "An algorithm for suffix
// stripping", Program 14(3), 1980, with the two changes that its author made
// later, bli to ble and logi to log. The steps have their numbers. A word that is
// not made of the letters a to z stays as it is.
func stem(word string) string {
	if len(word) <= 2 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	w := plural(word) // 1a
	w = participle(w) // 1b
	if cut, ok := strings.CutSuffix(w, "y"); ok && hasVowel(cut) {
		w = cut + "i" // 1c
	}
	w = replace(w, derived, 0)  // 2
	w = replace(w, derived3, 0) // 3
	w = residual(w)             // 4
	return final(w)             // 5
}

// ending is a suffix with what comes in its place.
type ending struct{ from, to string }

// Of two that fit a word the longer one stands first.
var (
	derived = []ending{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
		{"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"},
		{"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"},
		{"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"},
		{"logi", "log"},
	}
	derived3 = []ending{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	residues = []ending{
		{"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""}, {"ible", ""}, {"ant", ""},
		{"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""}, {"ism", ""}, {"ate", ""}, {"iti", ""},
		{"ous", ""}, {"ive", ""}, {"ize", ""},
	}
)

// replace replaces the ending that fits, where what stands before it has a
// measure of more than least.
func replace(w string, endings []ending, least int) string {
	for _, e := range endings {
		if cut, ok := strings.CutSuffix(w, e.from); ok {
			if measure(cut) > least {
				return cut + e.to
			}
			return w
		}
	}
	return w
}

func plural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

func participle(w string) string {
	if cut, ok := strings.CutSuffix(w, "eed"); ok {
		if measure(cut) > 0 {
			return w[:len(w)-1]
		}
		return w
	}
	cut, ok := strings.CutSuffix(w, "ed")
	if !ok {
		cut, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(cut) {
		return w
	}
	switch {
	case strings.HasSuffix(cut, "at"), strings.HasSuffix(cut, "bl"), strings.HasSuffix(cut, "iz"):
		return cut + "e"
	case endsDouble(cut) && strings.IndexByte("lsz", cut[len(cut)-1]) < 0:
		return cut[:len(cut)-1]
	case measure(cut) == 1 && endsShort(cut):
		return cut + "e"
	}
	return cut
}

func residual(w string) string {
	if cut, ok := strings.CutSuffix(w, "ion"); ok {
		if measure(cut) > 1 && (cut[len(cut)-1] == 's' || cut[len(cut)-1] == 't') {
			return cut
		}
		return w
	}
	return replace(w, residues, 1)
}

func final(w string) string {
	if cut, ok := strings.CutSuffix(w, "e"); ok {
		if m := measure(cut); m > 1 || m == 1 && !endsShort(cut) {
			w = cut
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

// consonant reports whether the letter at i is one: y is where it does not
// follow one.
func consonant(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !consonant(w, i-1)
	}
	return true
}

// measure counts how often consonants follow vowels: the m of a word of the
// form [C](VC)^m[V].
func measure(w string) int {
	m, vowel := 0, false
	for i := range len(w) {
		c := consonant(w, i)
		if c && vowel {
			m++
		}
		vowel = !c
	}
	return m
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if !consonant(w, i) {
			return true
		}
	}
	return false
}

func endsDouble(w string) bool {
	n := len(w)
	return n >= 2 && w[n-1] == w[n-2] && consonant(w, n-1)
}

// endsShort reports whether a word ends in consonant, vowel, consonant, the last
// of which is not w, x or y.
func endsShort(w string) bool {
	n := len(w)
	return n >= 3 && consonant(w, n-3) && !consonant(w, n-2) && consonant(w, n-1) && strings.IndexByte("wxy", w[n-1]) < 0
}
