package scaffold

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// spokenLanguages are the languages to distinguish. A language that is close to a common one, such as
// Haitian Creole to French, would be assigned some of its texts, so it is omitted.
var spokenLanguages = []whatlanggo.Lang{
	whatlanggo.Eng, whatlanggo.Deu, whatlanggo.Fra, whatlanggo.Spa, whatlanggo.Ita, whatlanggo.Por, whatlanggo.Nld,
	whatlanggo.Swe, whatlanggo.Dan, whatlanggo.Nob, whatlanggo.Fin, whatlanggo.Est, whatlanggo.Lav, whatlanggo.Lit,
	whatlanggo.Pol, whatlanggo.Ces, whatlanggo.Slv, whatlanggo.Hrv, whatlanggo.Hun, whatlanggo.Ron, whatlanggo.Tur,
	whatlanggo.Vie, whatlanggo.Ind, whatlanggo.Rus, whatlanggo.Ukr, whatlanggo.Bel, whatlanggo.Bul, whatlanggo.Srp,
	whatlanggo.Arb, whatlanggo.Pes, whatlanggo.Urd, whatlanggo.Hin, whatlanggo.Mar, whatlanggo.Nep, whatlanggo.Heb,
	whatlanggo.Ydd, whatlanggo.Amh, whatlanggo.Tir,
}

// shared lists the scripts of more than one language.
var shared = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Arabic, unicode.Devanagari, unicode.Hebrew, unicode.Ethiopic}

const (
	sampled    = 1000 // texts to examine
	longest    = 1024 // bytes of a text to examine
	minLetters = 20   // trigrams of fewer letters are not conclusive
	minSigns   = 4    // the same for a script of a single language
)

// languageOf returns the language of most of the texts as ISO 639-1, such as "en"; empty: unknown. The
// certainty of a text's language is its weight. If all texts are too short, they count as one text.
func languageOf(texts []string) string {
	among := whatlanggo.Options{Whitelist: map[whatlanggo.Lang]bool{}}
	for _, l := range spokenLanguages {
		among.Whitelist[l] = true
	}
	weights := map[whatlanggo.Lang]float64{}
	count := func(text string) {
		text = strings.ToValidUTF8(text[:min(len(text), longest)], "")
		found := whatlanggo.DetectWithOptions(text, among)
		least := minSigns
		if slices.Contains(shared, found.Script) {
			least = minLetters
		}
		if letters := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }); utf8.RuneCountInString(strings.Join(letters, "")) < least {
			return
		}
		if found.Lang == whatlanggo.Cmn && strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }) {
			found.Lang = whatlanggo.Jpn // whatlanggo examines only the most frequent script
		}
		weights[found.Lang] += found.Confidence
	}
	for i := 0; i < len(texts); i += (len(texts) + sampled - 1) / sampled {
		count(texts[i])
	}
	if len(weights) == 0 {
		count(strings.Join(texts, "\n"))
	}
	best, most := "", 0.
	for _, l := range slices.Sorted(maps.Keys(weights)) {
		if weights[l] > most {
			best, most = l.Iso6391(), weights[l]
		}
	}
	return best
}
