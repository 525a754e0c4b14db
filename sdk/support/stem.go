package support

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/go-porterstemmer"
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
)

// appendNgram appends the pairs of neighbouring letters of each run of letters that are written
// without spaces; a run of one letter gives this letter. Other words are appended whole.
func appendNgram(words []string, text string) []string {
	text = strings.ToLower(text)
	word := -1           // start of the current word; -1: none
	run, before := 0, -1 // letters of the current run, and the start of its last letter
	end := func(i int) {
		if word >= 0 {
			words = append(words, text[word:i])
		}
		if run == 1 {
			words = append(words, text[before:i])
		}
		word, run = -1, 0
	}
	for i := 0; i < len(text); {
		c, size, spaced := firstSpaced(text[i:])
		switch {
		case !spaced:
			if word >= 0 {
				end(i)
			}
			size += marks(text[i+size:])
			if run > 0 {
				words = append(words, text[before:i+size])
			}
			run, before = run+1, i
		case c == charSeparator || c == underscore:
			end(i)
		case word < 0 && c != charMark:
			end(i)
			word = i
		}
		i += size
	}
	end(len(text))
	return words
}

// firstSpaced is first, and also reports whether the character's script separates words by spaces.
func firstSpaced(text string) (c class, size int, spaced bool) {
	if text[0] < utf8.RuneSelf {
		return ascii[text[0]], 1, true
	}
	r, size := utf8.DecodeRuneInString(text)
	return classify(r), size, !unspaced(r)
}

// unspaced reports whether a letter belongs to a script that is written without spaces. Hangul
// counts, too: its spaces do not separate a word from its particles.
func unspaced(r rune) bool {
	switch {
	case r < firstThai:
		return false
	case r == 'ー', r == '〆', '〱' <= r && r <= '〵': // several scripts share them, so they belong to none
		return true
	}
	return (unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)) && unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

const firstThai = '\u0E00' // the lowest block of these scripts

// snowball returns the analyzer of a language: the words of standard, without the given ones, stemmed
// by Snowball. Some languages of Snowball are left out: strings.ToLower gets the i of Turkish wrong,
// and the stemmer of Romanian does not know today's letters ș and ț.
func snowball(language string, stem func(*snowballstem.Env) bool, without string) Analyzer {
	return Analyzer{name: language, split: stemmer(without, func(word string) string {
		env := snowballstem.NewEnv(word)
		stem(env)
		if env.Current() == "" {
			return word
		}
		return env.Current()
	})}
}

// stemmer stems the words of standard and leaves some out.
func stemmer(without string, stem func(string) string) func([]string, string) []string {
	stops := map[string]bool{}
	for word := range strings.FieldsSeq(without) {
		stops[word] = true
	}
	return func(words []string, text string) []string {
		text = strings.ToLower(text)
		for {
			var word string
			if word, text = next(text, false); word == "" {
				return words
			}
			if !stops[word] {
				words = append(words, stem(word))
			}
		}
	}
}

// The words left out are frequent ones, nearly all from Snowball's lists (snowballstem.org); as in
// English, negations stay. The part before an apostrophe is a word of its own: l'eau is l, eau.
var languages = []Analyzer{
	snowball("danish", danish.Stem, `
		den det de en et og i jeg du han hun vi man at af på til er var være været med for fra som om der
		dem sig sin sit sine har havde have denne dette disse eller men efter op over ud vil skal kan
		hvor når min din os ham hendes også så end her`),
	snowball("dutch", dutch.Stem, `
		de het een en van ik je hij zij ze wij we te dat die in is was waren zijn op aan met als voor er
		maar om hem haar dan zou of wat mijn men dit zo door over bij ook uit der deze hun naar heb heeft
		had hebben kan zal wordt werd worden ben tot`),
	snowball("finnish", finnish.Stem, `
		ja on oli ovat olivat ole olla olen hän se ne me te he minä sinä että tai sekä mutta kun kuin jos
		niin joka jotka jonka mikä mitä tämä tämän tässä nämä siitä siinä sen sitä niiden myös vaan
		kanssa mukaan noin yli`),
	snowball("french", french.Stem, `
		le la les l un une des du de d et ou où à au aux en dans par pour sur avec ce cet cette ces c qui
		que qu il elle ils elles on je j tu nous vous se s sa son ses leur leurs ma mon mes ta ton tes y
		est sont été être était étaient a ont avait avaient mais lui m t n`),
	snowball("german", german.Stem, `
		der die das den dem des ein eine einer eines einem einen und oder aber in im an am auf aus bei mit
		nach von vom vor zu zum zur für um durch über als wie dass daß ist sind war waren wird werden sein
		hat haben es er sie ich du wir ihr sich dieser diese dieses so auch`),
	snowball("hungarian", hungarian.Stem, `
		a az egy és hogy is ez ezt azt ezek azok ami amely amelyek aki ahol vagy mint de ha csak még már
		meg el ki be le fel volt van lesz vannak voltak lenne mert pedig után által között majd arra erre
		ő én`),
	snowball("italian", italian.Stem, `
		il lo la i gli le l un uno una di del dello della dei degli delle dell da dal dalla dai dalle
		dall in nel nella nei nelle nell a al allo alla ai alle all su sul sulla sui sulle con per tra e
		ed o che chi cui è sono era erano ha hanno si ci questo questa questi queste come ma c d s`),
	snowball("norwegian", norwegian.Stem, `
		den det de en et ei og i jeg du han hun vi man at av på til er var være vært med for fra som om der
		dem seg sin sitt sine har hadde ha denne dette disse eller men etter opp over ut vil skal kan hvor
		når min din oss ham hennes også så enn her ble bli`),
	snowball("portuguese", portuguese.Stem, `
		o a os as um uma uns de do da dos das em no na nos nas ao à aos às por pelo pela pelos pelas para com e
		ou que se é são era foi foram ser está estão tem têm ele ela eles elas eu você seu sua seus suas
		este esta esse essa isso isto como mais mas`),
	snowball("russian", russian.Stem, `
		и в во на с со к по из у за от до для о об при что как так но а или же бы то это этот этого эти
		он она они его ее её их ему им я мы вы ты был была было были быть есть который где когда если чтобы
		там тоже`),
	snowball("spanish", spanish.Stem, `
		el la los las lo un una unos unas de del al a en y e o u con por para que se su sus es son era
		eran fue fueron ser ha han había como más pero le les me te nos mi tu este esta estos estas esto
		ese esa eso él ella ellos ellas yo cuando`),
	snowball("swedish", swedish.Stem, `
		den det de en ett och i jag du han hon vi man att av på till är var vara varit med för från som om
		där dem sig sin sitt sina har hade denna detta dessa eller men efter upp över ut ska kan vid när
		min din oss honom hennes också så än här blev blir`),
}

// stem removes the endings of inflection and derivation from an English word in lower case. The
// algorithm is M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the
// author's two later changes, bli to ble and logi to log. A word with other letters than a to z stays
// as it is.
func stem(word string) string {
	if len(word) <= 2 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	if stem, ok := endings[word]; ok {
		return stem
	}
	return string(porterstemmer.StemWithoutLowerCasing([]rune(word)))
}

// endings are words that consist of an ending. The library cuts them elsewhere than Porter does.
var endings = map[string]string{"eed": "eed", "eeds": "eed", "ies": "i", "sses": "ss"}
