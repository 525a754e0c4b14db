package language

import (
	"slices"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

const (
	minLetters = 20   // below which trigrams say too little
	minSigns   = 4    // the same for a script that one language alone is written in
	longest    = 1024 // bytes of a text that are looked at
)

// reliable is the confidence from which on whatlanggo is believed.
const reliable = 0.9

// spoken are the languages that are told apart. Each further one that is close to a
// common one, such as Haitian Creole to French, costs texts of that one.
var spoken = whatlanggo.Options{Whitelist: map[whatlanggo.Lang]bool{}}

func init() {
	for _, l := range []whatlanggo.Lang{
		whatlanggo.Eng, whatlanggo.Deu, whatlanggo.Fra, whatlanggo.Spa, whatlanggo.Ita, whatlanggo.Por, whatlanggo.Nld,
		whatlanggo.Swe, whatlanggo.Dan, whatlanggo.Nob, whatlanggo.Fin, whatlanggo.Est, whatlanggo.Lav, whatlanggo.Lit,
		whatlanggo.Pol, whatlanggo.Ces, whatlanggo.Slv, whatlanggo.Hrv, whatlanggo.Hun, whatlanggo.Ron, whatlanggo.Tur,
		whatlanggo.Vie, whatlanggo.Ind, whatlanggo.Rus, whatlanggo.Ukr, whatlanggo.Bel, whatlanggo.Bul, whatlanggo.Srp,
		whatlanggo.Arb, whatlanggo.Pes, whatlanggo.Urd, whatlanggo.Hin, whatlanggo.Mar, whatlanggo.Nep, whatlanggo.Heb,
		whatlanggo.Ydd, whatlanggo.Amh, whatlanggo.Tir,
	} {
		spoken.Whitelist[l] = true
	}
}

// shared are the scripts that several languages are written in.
var shared = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Arabic, unicode.Devanagari, unicode.Hebrew, unicode.Ethiopic}

// Of returns the language of a text as ISO 639-1, such as "en"; empty where it is not
// known well enough.
func Of(text string) string {
	l, confidence := detect(cut(text), spoken)
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
