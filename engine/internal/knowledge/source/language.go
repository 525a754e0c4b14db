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

// This file says in which language texts are written, for reports about data.
//
// It counts trigrams (Cavnar and Trenkle, "N-gram-based text categorization", 1994), as
// whatlanggo implements it: 38 languages, and those that have a script of their own. Short
// texts are hard: of English utterances with 20 letters or more it names the language of
// half, 1 in 100 of them wrongly; shorter ones it does not judge. So a single text that
// seems to be in another language means little, and Mix leaves out what is as rare as errors.
//
// It changes no answer: no stage, no rule and no search depends on it.

const (
	minLetters = 20   // below which trigrams say too little
	minSigns   = 4    // the same for a script that one language alone is written in
	longest    = 1024 // bytes of a text that are looked at
)

// reliable is the confidence from which on whatlanggo is believed.
const reliable = 0.9

// spokenLanguages are the languages that are told apart. Each further one that is close to a
// common one, such as Haitian Creole to French, costs texts of that one.
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

// shared are the scripts that several languages are written in.
var shared = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Arabic, unicode.Devanagari, unicode.Hebrew, unicode.Ethiopic}

// Language returns the language of a text as ISO 639-1, such as "en"; empty where it is not
// known well enough.
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
		return whatlanggo.Jpn, 1 // whatlanggo goes by the commonest script alone
	}
	return found.Lang, found.Confidence
}

// cut returns the beginning of a text, whole characters of it.
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

// letters counts letters until there are enough of them.
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

// kana reports whether a text has signs that Japanese alone is written in.
func kana(text string) bool {
	for _, r := range text {
		if unicode.In(r, unicode.Hiragana, unicode.Katakana) {
			return true
		}
	}
	return false
}

const (
	sampled = 1000 // texts that are looked at, drawn at random
	rare    = 0.05 // the share below which a language may well be an error
)

// LanguageShare is a language with its share of the texts.
type LanguageShare struct {
	Language string  `json:"language"` // ISO 639-1
	Share    float64 `json:"share"`    // of the texts whose language is known, 0 to 1
}

// Languages returns the languages of texts, the commonest first; none where it is not known of
// any. Of many texts it looks at 1,000, the same ones each time. A first pass weighs each
// text's language by how sure it is; the second tells those languages apart that have 5 %
// of that, which is easier, so that short texts count, too. Others are left out. Where each
// text is too short to tell, the language is that of all of them together.
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

// count returns what share of the texts' weights each language has; rare ones are left out.
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

// draw keeps some texts of any number, each as likely as another (Vitter's algorithm R,
// "Random sampling with a reservoir", 1985).
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
