package answer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// separator stands between what an answer is called and the answer: a colon, an equals sign, an
// arrow, a dash between spaces, or the word "is" in a few languages.
var separator = regexp.MustCompile(`[-=]>|→|[:：]|={1,2}|[ \t][-–—][ \t]|(?i:[ \t](?:is|ist|est|es|è|é)[ \t])`)

// The most of a text that is looked through for a prefix, in bytes, and how many words may stand
// before the label.
const (
	maxText   = 1 << 16
	maxPrefix = 8
)

// prefixed returns the label that stands behind a prefix (Label: x, The answer is x). Which
// words those are does not matter, so that it need not know languages: the label ends its
// line, or stands alone on the next, nothing before it denies it, and no other label
// stands anywhere in the text.
func (r *reader) prefixed(raw, text string) (f found, ok bool) {
	several := false
	if len(text) > maxText {
		return f, false
	}
	lines(raw, func(from, to int) {
		for _, m := range separator.FindAllStringIndex(text[from:to], -1) {
			start, end := from+m[1], to
			if end-start > r.longestName()+maxAround {
				continue
			}
			if strings.TrimSpace(text[start:end]) == "" {
				start, end = firstLine(raw, end)
			}
			found, matches := r.match(raw, text, start, end)
			if !matches || !introduces(text[from:from+m[0]]) {
				continue
			}
			several = several || ok && found.label != f.label
			found.reading = strings.Trim("without prefix, "+found.reading, ", ")
			f, ok = found, true
			return
		}
	})
	if !ok || several || r.others(text[:f.from]+cutOut+text[f.to:], f.label) {
		return f, false
	}
	return f, true
}

// introduces reports whether a text, or its last sentence, can be what an answer is called.
func introduces(text string) bool {
	if at := strings.LastIndexAny(text, ".!?;。！？；"); at >= 0 {
		text = text[at+1:]
	}
	words := wordsOf(text)
	return len(words) > 0 && len(words) <= maxPrefix && !denies(text) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return !isWordPart(r) && !unicode.IsSpace(r) && !strings.ContainsRune("'’,:：_-()", r)
		})
}

// denials are the words by which a few languages deny or except what follows. There
// are no more of them: a language does not gain such words.
var denials = strings.Fields(`
	no not never none neither nor cannot without except excluding but unlike than isn wasn aren don doesn
	nicht kein keine keinen keiner keinesfalls nie niemals weder ohne außer
	ne n pas non jamais aucun aucune ni sans sauf
	nunca ningún ninguna sin excepto salvo
	mai nessun nessuna né senza tranne
	não nunca nenhum nenhuma nem sem exceto
	niet geen nooit zonder behalve
	nie не нет ни ikke inte ej`)

// denies reports whether a text denies what follows it.
func denies(text string) bool {
	return strings.ContainsAny(text, "不非没無无") || slices.ContainsFunc(wordsOf(strings.ToLower(text)), func(word string) bool {
		return slices.Contains(denials, word)
	})
}
