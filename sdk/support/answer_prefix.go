package support

import (
	"slices"
	"strings"
	"unicode"
)

// answerSeparator matches the separator between a prefix and the answer: a colon, an equals sign, an
// arrow, a dash between spaces, or the word "is" in a few languages.
var answerSeparator = Pattern(`[-=]>|→|[:：]|={1,2}|[ \t][-–—][ \t]|(?i:[ \t](?:is|ist|est|es|è|é)[ \t])`)

// Limits on the search for a prefix.
const (
	maxText   = 1 << 16 // bytes of the text
	maxPrefix = 8       // words of the prefix
)

// marked matches the beginning of a line that is marked as the answer: a check mark, or a LaTeX box.
var marked = Pattern(`^\s*[` + checkMarks + `]|^[\s$(\[]*\\(?:boxed|fbox)\{`)

// prefixed returns the label behind a prefix (Label: x, The answer is x). The words of the prefix do
// not matter, so prefixed need not know languages. The label must end its line, or stand alone on the
// next. Nothing before it may deny it, and no other label may stand anywhere in the text. A label
// that is only marked counts if nothing else in the text denies or hedges.
func (r *reader) prefixed(raw, text string) (f foundLabel, ok bool) {
	if len(text) > maxText {
		return f, false
	}
	several, bare := false, false // bare: the label is marked, but has no prefix
	begin, finish := 0, 0         // the candidate for the answer
	lines(raw, func(from, to int) {
		line := text[from:to]
		all := answerSeparator().FindAllStringIndex(line, -1)
		prefixes := len(all)
		if marked().MatchString(line) {
			all = append(all, []int{0, 0})
		}
		for i, m := range all {
			start, end := from+m[1], to
			if end-start > r.longestName()+maxAround {
				continue
			}
			if strings.TrimSpace(text[start:end]) == "" {
				start, end = firstLine(raw, end)
			}
			found, matches := r.match(raw, text, start, end)
			if !matches || i < prefixes && !introduces(line[:m[0]]) {
				continue
			}
			several = several || ok && found.label != f.label
			switch {
			case i < prefixes:
				bare, begin, finish = false, found.from, found.to
			case ok: // the label also stands above
				return
			default:
				bare, begin, finish = true, from+m[0], end
			}
			if m[1] > 0 {
				found.reading = strings.Trim("without prefix, "+found.reading, ", ")
			}
			f, ok = found, true
			return
		}
	})
	rest := text[:begin] + cutOut + text[finish:]
	if !ok || several || r.others(rest, f.label) || bare && (denies(rest) || hasWord(rest, doubts)) {
		return foundLabel{}, false
	}
	return f, true
}

// introduces reports whether a text, or its last sentence, can be a prefix of an answer.
func introduces(text string) bool {
	if at := strings.LastIndexAny(text, ".!?;。！？；"); at >= 0 {
		text = text[at+1:]
	}
	words := wordsOf(text)
	return len(words) > 0 && len(words) <= maxPrefix && !denies(text) && !hasWord(text, doubts) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return !isWordPart(r) && !unicode.IsSpace(r) && !strings.ContainsRune("'’,:：_-()"+checkMarks, r)
		})
}

// denials are the words with which a few languages negate or exclude what follows. The list is
// complete for these languages: they do not gain such words.
var denials = strings.Fields(`
	no not never none neither nor cannot without except excluding but unlike than isn wasn aren don doesn
	nicht kein keine keinen keiner keinesfalls nie niemals weder ohne außer
	ne n pas non jamais aucun aucune ni sans sauf
	nunca ningún ninguna sin excepto salvo
	mai nessun nessuna né senza tranne
	não nunca nenhum nenhuma nem sem exceto
	niet geen nooit zonder behalve
	nie не нет ни ikke inte ej`)

// doubts are words that hedge in English, German, French, Spanish, Italian and Portuguese.
var doubts = strings.Fields(`
	maybe perhaps possibly probably might could may unsure unclear
	vielleicht eventuell möglicherweise wahrscheinlich vermutlich
	peut probablement quizá quizás posiblemente probablemente
	forse possibilmente probabilmente talvez possivelmente provavelmente`)

// denies reports whether a text denies what follows it.
func denies(text string) bool {
	return strings.ContainsAny(text, "不非没無无") || hasWord(text, denials)
}

// hasWord reports whether a text contains one of the words.
func hasWord(text string, words []string) bool {
	return slices.ContainsFunc(wordsOf(strings.ToLower(text)), func(word string) bool { return slices.Contains(words, word) })
}
