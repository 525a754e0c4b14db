package support

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file turns a text into the words that the lexical leg of a search counts. Knowledge and
// queries go through the same analyzer, in every store, so that equal words match.
//
// All analyzers convert the text to Unicode form NFKC and to lower case: a full-width letter or a
// ligature finds its plain form. Invisible characters do not separate words. The final sigma counts
// as a sigma, and the vowel marks of Arabic and Hebrew are removed (folded). A word is a run of
// letters, digits and the marks on them; everything else separates words. In all analyzers but ngram,
// each Chinese character and each Hiragana is a word.
//
//   - standard takes words as they are: "Re-open tab2" is re, open, tab2.
//   - code takes an identifier as a whole, underscores included. If the identifier has several parts, they
//     follow: camelCase, snake_case, digits. "getHTTPServer_v2" is gethttpserver_v2, get, http, server, v,
//     2. Paths are divided into their names.
//   - english stems words (Porter, 1980), and removes some fifty words that nearly every text has: "the
//     diseases of cells" is diseas, cell.
//   - danish, dutch, finnish, french, german, hungarian, italian, norwegian, portuguese, russian, spanish
//     and swedish do the same with the stemmers of Snowball 2.0 (Porter, 2001, snowballstem.org): "die
//     Häuser" is haus. Compounds stay whole.
//   - ngram is for languages written without spaces. A run of their letters gives its overlapping pairs,
//     each letter with its marks: 東京都 is 東京, 京都. A single letter is a word, and everything else is as
//     in standard.
//
// The pairs of ngram are those of Lucene's CJKAnalyzer: runs of Han, Hiragana, Katakana, Bopomofo and
// Hangul. A run crosses the borders between these scripts, since a Japanese word may have several of
// them. Pairs need no dictionary and retrieve about as well as words (Nie, Gao, Zhang and Zhou, "On
// the use of words and n-grams for Chinese information retrieval", IRAL 2000). Thai, Lao, Khmer and
// Myanmar have no spaces either, and are treated alike. Korean has spaces, but writes particles to
// the word; the pairs of a word match with any particle (Lee and Ahn, "Using n-grams for Korean text
// retrieval", SIGIR 1996), and the whole word would add nothing. A query of a single such letter
// finds only texts in which the letter stands alone; to search for single Chinese characters, use
// standard.
//
// Standard, code and ngram have no stop words and no stems, and keep accents. A store keeps the name
// of its analyzer with its words (StoredAnalyzer). The words that an analyzer makes under one stored
// name never change: another version has another stored name.

// Analyzer splits texts into words. It is immutable and safe for concurrent use.
type Analyzer struct {
	name  string
	split func(words []string, text string) []string // text in form NFKC, folded
	first bool                                       // the first version, which does not fold
}

// storedVersion is the suffix of an analyzer's name in a store; the first version has none.
const storedVersion = "/2"

// StoredName returns the name under which a store keeps an analyzer of today. It also accepts stored
// names.
func StoredName(name string) string {
	if name == "" || strings.HasSuffix(name, storedVersion) {
		return name
	}
	return name + storedVersion
}

// StoredAnalyzer returns the analyzer that made a store's words, from the name that the store keeps.
func StoredAnalyzer(kept string) (Analyzer, error) {
	name, now := strings.CutSuffix(kept, storedVersion)
	a, err := NamedAnalyzer(name)
	a.first = !now
	return a, err
}

var analyzers = slices.SortedFunc(slices.Values(append([]Analyzer{
	{name: "code", split: appendCode},
	{name: "english", split: stemmer(englishStops, stem)},
	{name: "ngram", split: appendNgram},
	{name: "standard", split: appendStandard},
}, languages...)), func(a, b Analyzer) int { return cmp.Compare(a.name, b.name) })

// AnalyzerNames lists the analyzers, sorted.
func AnalyzerNames() []string {
	names := make([]string, len(analyzers))
	for i, a := range analyzers {
		names[i] = a.name
	}
	return names
}

// NamedAnalyzer returns the analyzer with a name.
func NamedAnalyzer(name string) (Analyzer, error) {
	for _, a := range analyzers {
		if a.name == name {
			return a, nil
		}
	}
	return Analyzer{}, fmt.Errorf("unknown analyzer %q; use one of %s", name, strings.Join(AnalyzerNames(), ", "))
}

// String returns the analyzer's name.
func (a Analyzer) String() string { return a.name }

// Append appends the words of a text to words, with repetitions and in the order of the text, and
// returns the extended slice. The words may share memory with the text.
func (a Analyzer) Append(words []string, text string) []string {
	text = norm.NFKC.String(text)
	if !a.first {
		text = folded(text)
	}
	return a.split(words, text)
}

// folded removes characters that do not tell words apart, and turns the final sigma into a sigma.
func folded(text string) string {
	before := rune(0)
	return strings.Map(func(r rune) rune {
		switch {
		case r < firstFolded:
		case r == 'ς':
			r = 'σ'
		case Unseen(r) && !parts(before, r), unicode.Is(vowels, r):
			return -1
		}
		before = r
		return r
	}, text)
}

const firstFolded = '\u00AD' // the lowest character that folded changes

// Unseen reports whether a character is invisible: a soft hyphen, a joiner, or a space or byte order
// mark without width.
func Unseen(r rune) bool {
	return r == '\u00AD' || '\u200B' <= r && r <= '\u200D' || r == '\u2060' || r == '\uFEFF'
}

// parts reports whether an invisible character separates words after a letter. In Persian the
// non-joiner stands where others write a space, and in scripts without spaces the space without width
// does.
func parts(before, unseen rune) bool {
	return unseen == '\u200C' && unicode.Is(unicode.Arabic, before) || unseen == '\u200B' && unspaced(before)
}

// vowels are the vowel marks that most Arabic and Hebrew texts leave out, and the Arabic line that
// stretches words.
var vowels = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0591, Hi: 0x05BD, Stride: 1}, {Lo: 0x05BF, Hi: 0x05BF, Stride: 1}, {Lo: 0x05C1, Hi: 0x05C2, Stride: 1}, {Lo: 0x05C4, Hi: 0x05C5, Stride: 1},
	{Lo: 0x05C7, Hi: 0x05C7, Stride: 1}, {Lo: 0x0640, Hi: 0x0640, Stride: 1}, {Lo: 0x064B, Hi: 0x0652, Stride: 1}, {Lo: 0x0670, Hi: 0x0670, Stride: 1},
}}

func appendStandard(words []string, text string) []string {
	text = strings.ToLower(text)
	for {
		var word string
		if word, text = next(text, false); word == "" {
			return words
		}
		words = append(words, word)
	}
}

func appendCode(words []string, text string) []string {
	for {
		var name string
		if name, text = next(text, true); name == "" {
			return words
		}
		if name = strings.Trim(name, "_"); name == "" {
			continue
		}
		words = append(words, strings.ToLower(name))
		for rest := name; rest != ""; {
			var part string
			part, rest = nextPart(rest)
			if part == name {
				break
			}
			words = append(words, strings.ToLower(part))
		}
	}
}

// englishStops are words that nearly every English text has, and that do not say what the text is
// about. Negations are not among them: they are rare enough to matter.
const englishStops = `
	a an the and or but if of in on at by for to from with into as than
	is are was were be been being it its this that these those there
	they them their we our which who such will would has have had do does did`

// class is the role of a character in a word.
type class uint8

const (
	charSeparator class = iota
	underscore
	lower // also letters without case
	upper
	digit
	charMark // continues the word before it
	alone    // a word by itself
)

// ascii holds the classes of the characters that most texts consist of.
var ascii = func() (table [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = classify(r)
	}
	return table
}()

func classify(r rune) class {
	switch {
	case r == '_':
		return underscore
	case unicode.In(r, unicode.Han, unicode.Hiragana) && unicode.IsLetter(r):
		return alone
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsNumber(r):
		return digit
	case unicode.IsMark(r):
		return charMark
	}
	return charSeparator
}

// first returns the class and the size in bytes of the first character.
func first(text string) (class, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, size := utf8.DecodeRuneInString(text)
	return classify(r), size
}

// next returns the first word of a text, and the rest of the text; an empty word means that there is
// none. With names, underscores belong to words.
func next(text string, names bool) (word, rest string) {
	start := -1
	for i := 0; i < len(text); {
		c, size := first(text[i:])
		if c == underscore && !names {
			c = charSeparator
		}
		inside := start >= 0
		switch {
		case inside && (c == charSeparator || c == alone):
			return text[start:i], text[i:]
		case c == alone:
			size += marks(text[i+size:])
			return text[i : i+size], text[i+size:]
		case !inside && c != charSeparator && c != charMark:
			start = i
		}
		i += size
	}
	if start < 0 {
		return "", ""
	}
	return text[start:], ""
}

// marks returns the number of bytes of the marks at the beginning of a text.
func marks(text string) int {
	n := 0
	for n < len(text) {
		c, size := first(text[n:])
		if c != charMark {
			break
		}
		n += size
	}
	return n
}

// nextPart returns the first part of a name, and the parts that follow. The name does not begin with
// an underscore. A part ends between letters and digits, before a capital after a small letter
// (camel|Case), and before the last of several capitals if a small letter follows (HTTP|Server).
func nextPart(name string) (part, rest string) {
	before, last := charSeparator, 0 // class and position of the character before
	for i := 0; i < len(name); {
		c, size := first(name[i:])
		switch {
		case c == underscore:
			return name[:i], strings.TrimLeft(name[i:], "_")
		case c == charMark:
			i += size
			continue
		case before == upper && c == lower && last > 0:
			return name[:last], name[last:]
		case before == upper && c == lower, before == c, before == charSeparator:
		default:
			return name[:i], name[i:]
		}
		before, last = c, i
		i += size
	}
	return name, ""
}
