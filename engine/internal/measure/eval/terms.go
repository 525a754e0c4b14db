package eval

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// QuestionTerms are the words of a question that distinguish passages, each with a weight.
type QuestionTerms struct {
	analyzer support.Analyzer
	weights  map[string]float64
}

// asking lists words of questions that answers seldom have. The analyzer english leaves out few of
// them, so they would count as rare words.
var asking = strings.Fields("how what when where which who whom whose why i me my we us our you your he him his she her it its " +
	"do does did doing can could should would may might must shall will am is are was were be been has have had any some there about")

// english is an analyzer that leaves out words that nearly every text has.
var english = func() support.Analyzer {
	a, err := support.NamedAnalyzer("english")
	if err != nil {
		panic(err)
	}
	return a
}()

// QuestionTermsOf splits a question into words with the named analyzer of the store, or with
// english if there is no such analyzer. A word's weight is its inverse document frequency as in
// BM25, counted among the candidates of a search, so that rare words decide.
func QuestionTermsOf(question, analyzer string, among []sdk.Candidate) *QuestionTerms {
	t := &QuestionTerms{weights: map[string]float64{}}
	var err error
	if t.analyzer, err = support.NamedAnalyzer(analyzer); err != nil {
		t.analyzer = english
	}
	for _, word := range t.analyzer.Append(nil, t.plain(question)) {
		t.weights[word] = 0
	}
	in := map[string]int{}
	for i := range among {
		for word := range t.in(searched(among[i])) {
			in[word]++
		}
	}
	n := float64(len(among))
	for word := range t.weights {
		t.weights[word] = math.Log(1 + (n-float64(in[word])+.5)/(float64(in[word])+.5))
	}
	return t
}

// plain returns a question without the words that nearly every English text or question has. For an
// analyzer of another language it returns the question as it is.
func (t *QuestionTerms) plain(question string) string {
	switch t.analyzer.String() {
	case "english", "code", "standard":
	default:
		return question
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		word = strings.ToLower(strings.Trim(word, `.,:;!?'"()`))
		return slices.Contains(asking, word) || len(english.Append(nil, word)) == 0
	}), " ")
}

// searched returns the text of a candidate in which words are sought: its text and context, and the
// title, path and headings of its document.
func searched(c sdk.Candidate) string {
	parts := []string{c.Context, c.Text}
	for _, key := range []string{"title", "path", "headings"} {
		if s, ok := c.Meta[key].(string); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

// in returns the terms that a text has.
func (t *QuestionTerms) in(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range t.analyzer.Append(nil, text) {
		if _, ok := t.weights[word]; ok {
			found[word] = true
		}
	}
	return found
}

// Best returns the position of the first of the sentences that have most of the terms by weight; 0 if none has any.
func (t *QuestionTerms) Best(sentences []string) int {
	best, most := 0, 0.0
	for i, text := range sentences {
		sum := 0.0
		for word := range t.in(text) {
			sum += t.weights[word]
		}
		if sum > most+1e-9 {
			best, most = i, sum
		}
	}
	return best
}

// Mark puts before and after around the words of a line that are terms in any inflected form. It
// marks nothing in languages written without spaces, where it cannot find word boundaries.
func (t *QuestionTerms) Mark(line, before, after string) string {
	var b strings.Builder
	inWord := func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.M, unicode.N) || r == '_' || support.Unseen(r)
	}
	for line != "" {
		at := strings.IndexFunc(line, inWord)
		if at < 0 {
			break
		}
		b.WriteString(line[:at])
		line = line[at:]
		end := strings.IndexFunc(line, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(line)
		}
		if word := line[:end]; len(t.in(word)) > 0 && strings.IndexFunc(word, unspaced) < 0 {
			b.WriteString(before + word + after)
		} else {
			b.WriteString(word)
		}
		line = line[end:]
	}
	return b.String() + line
}

// unspaced reports whether a letter is of a script that is written without spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
