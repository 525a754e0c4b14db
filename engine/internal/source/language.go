package source

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

// This file detects the language of texts, for reports about data.
//
// It counts trigrams (Cavnar and Trenkle, "N-gram-based text categorization", 1994), as implemented
// by whatlanggo: 38 languages, and those that have a script of their own. Short texts are hard: of
// English utterances with 20 letters or more it names the language of half, 1 in 100 of them
// wrongly; it does not judge shorter ones. So a single text that seems to be in another language
// means little, and Languages leaves out languages as rare as errors.
//
// The file changes no answer: no stage, no rule and no search depends on it.

const (
	minLetters = 20   // trigrams of fewer letters say too little
	minSigns   = 4    // the same for a script of a single language
	longest    = 1024 // bytes of a text to look at
)

// reliable is the least confidence of whatlanggo to accept.
const reliable = 0.9

// spokenLanguages are the languages to distinguish. Each one that is close to a common language,
// such as Haitian Creole to French, loses some texts of the common one.
var spokenLanguages = whatlanggo.Options{Whitelist: map[whatlanggo.Lang]bool{}}

func init() {
	for _, l := range []whatlanggo.Lang{
		whatlanggo.Eng, whatlanggo.Deu, whatlanggo.Fra, whatlanggo.Spa, whatlanggo.Ita, whatlanggo.Por, whatlanggo.Nld,
		whatlanggo.Swe, whatlanggo.Dan, whatlanggo.Nob, whatlanggo.Fin, whatlanggo.Est, whatlanggo.Lav, whatlanggo.Lit,
		whatlanggo.Pol, whatlanggo.Ces, whatlanggo.Slv, whatlanggo.Hrv, whatlanggo.Hun, whatlanggo.Ron, whatlanggo.Tur,
		whatlanggo.Vie, whatlanggo.Ind, whatlanggo.Rus, whatlanggo.Ukr, whatlanggo.Bel, whatlanggo.Bul, whatlanggo.Srp,
		whatlanggo.Arb, whatlanggo.Pes, whatlanggo.Urd, whatlanggo.Hin, whatlanggo.Mar, whatlanggo.Nep, whatlanggo.Heb,
		whatlanggo.Ydd, whatlanggo.Amh, whatlanggo.Tir,
	} {
		spokenLanguages.Whitelist[l] = true
	}
}

// shared lists the scripts of more than one language.
var shared = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Arabic, unicode.Devanagari, unicode.Hebrew, unicode.Ethiopic}

// Language returns the language of a text as ISO 639-1, such as "en"; empty where the confidence is
// too low.
func Language(text string) string {
	l, confidence := detect(cut(text), spokenLanguages)
	if confidence < reliable {
		return ""
	}
	return l.Iso6391()
}

// detect returns the likeliest of some languages, with a confidence from 0 to 1.
func detect(text string, among whatlanggo.Options) (whatlanggo.Lang, float64) {
	found := whatlanggo.DetectWithOptions(text, among)
	least := minSigns
	if slices.Contains(shared, found.Script) {
		least = minLetters
	}
	if letters(text, least) < least {
		return found.Lang, 0
	}
	if found.Lang == whatlanggo.Cmn && kana(text) {
		return whatlanggo.Jpn, 1 // whatlanggo looks at the commonest script only
	}
	return found.Lang, found.Confidence
}

// cut returns the beginning of a text, in whole characters.
func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end]
}

// letters counts letters, up to enough.
func letters(text string, enough int) int {
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			if n++; n == enough {
				break
			}
		}
	}
	return n
}

// kana reports whether a text has characters that only Japanese uses.
func kana(text string) bool {
	for _, r := range text {
		if unicode.In(r, unicode.Hiragana, unicode.Katakana) {
			return true
		}
	}
	return false
}

const (
	sampled = 1000 // number of texts to look at, drawn at random
	rare    = 0.05 // a language with a lower share may well be an error
)

// LanguageShare is a language with its share of the texts.
type LanguageShare struct {
	Language string  `json:"language"` // ISO 639-1
	Share    float64 `json:"share"`    // of the texts with a known language, 0 to 1
}

// Languages returns the languages of texts, the commonest first; none if no text's is known. Of
// many texts it looks at 1,000, the same ones each time. A first pass weighs each text's language
// by its confidence; the second distinguishes only languages with 5 % of that weight, which is
// easier, so that short texts count, too. It omits the others. If each text is too short, it judges
// all texts together.
func Languages(texts iter.Seq[string]) []LanguageShare {
	sample := draw(texts)
	among := spokenLanguages
	counts := count(sample, among, func(confidence float64) float64 { return confidence })
	if len(counts) > 0 {
		among = whatlanggo.Options{Whitelist: map[whatlanggo.Lang]bool{}}
		for l := range counts {
			among.Whitelist[l] = true
		}
		counts = count(sample, among, func(confidence float64) float64 {
			if confidence < reliable {
				return 0
			}
			return 1
		})
	} else if l := Language(strings.Join(sample, "\n")); l != "" {
		return []LanguageShare{{l, 1}}
	}
	var all []LanguageShare
	for l, share := range counts {
		all = append(all, LanguageShare{l.Iso6391(), share})
	}
	slices.SortFunc(all, func(a, b LanguageShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Language, b.Language))
	})
	return all
}

// count returns each language's share of the weight of texts, without rare ones.
func count(texts []string, among whatlanggo.Options, weight func(confidence float64) float64) map[whatlanggo.Lang]float64 {
	counts, total := map[whatlanggo.Lang]float64{}, 0.
	for _, text := range texts {
		if l, confidence := detect(text, among); confidence > 0 {
			counts[l] += weight(confidence)
			total += weight(confidence)
		}
	}
	kept := 0.
	for l, n := range counts {
		if n < rare*total || n == 0 {
			delete(counts, l)
		} else {
			kept += n
		}
	}
	for l := range counts {
		counts[l] /= kept
	}
	return counts
}

// draw keeps a uniform random sample of texts (Vitter's algorithm R, "Random sampling with a
// reservoir", 1985).
func draw(texts iter.Seq[string]) []string {
	var kept []string
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // it is to be the same each time
	seen := 0
	for text := range texts {
		seen++
		if len(kept) < sampled {
			kept = append(kept, strings.Clone(cut(text)))
		} else if at := random.IntN(seen); at < sampled {
			kept[at] = strings.Clone(cut(text))
		}
	}
	return kept
}
