package eval

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file judges the result of a search without reading it as a language model does: which words
// of the question matched, and whether any passage found is likely to answer it.
//
// A search always finds something. Its scores do not say whether that answers the question: they
// are comparable only within one question. Judge uses two features that mean the same for each
// question: the cosine of the nearest candidate, and the share of the question's words, weighted by
// idf among the candidates, that one of the first five has. A logistic regression turns them into a
// probability. It is fitted on four collections with equal weight, where half of the questions have
// an answer: the example documentation (54 questions), Anthropic's nine codebases (124), SciFact
// (300 claims) and CLINC150 as a list of frequent questions (300 utterances, and 300 that are out
// of its scope). Questions without an answer are those about another of these collections
// ("foreign"), and the collection's own with all documents left out that answer them ("near").
//
// The table shows, for each collection and a model fitted on the other three, the area under the
// ROC curve over all, foreign and near questions; then the percentage of questions that Judge calls
// unlikely.
//
//	                     AUC all  foreign  near   has answer  foreign  near
//	minilm
//	  documentation          .83      .98   .68           13       96    22
//	  nine codebases         .96     1.00   .91            0       93    19
//	  CLINC150               .92     1.00   .83            0       73     2   out of scope: .92, 7
//	  SciFact                .83      .96   .70            0       44     0
//
// So Judge recognises a question about something else, but mostly not one that the documents come
// close to. It judges by minilm's cosines alone: those of another embedder have another distribution, and
// words alone do not carry over well enough (an AUC of .76). All collections are English: in another
// language only its analyzer's own stop words are left out.
//
// The judgement changes nothing: passages are shown all the same.

// inspected is the number of best candidates whose coverage counts.
const inspected = 5

// The logistic regression (Platt, "Probabilistic outputs for support vector machines", 1999) as fitted to
// the collections that the comment above names, by the cosines of minilm.
const (
	offset        = -4.16
	cosineWeight  = 5.29
	coveredWeight = 3.66
	unlikely      = .15 // a person is warned below this probability
)

// Judgement says whether any candidate is likely to answer the question.
type Judgement struct {
	Unlikely bool // probably none answers it
	// Probability that one answers it, if half of all questions have an answer; NaN: nothing was judged.
	Probability float64
}

// Judge judges a question's best candidates, best first as a pipeline left them. embedder is its name in
// the file. It judges nothing if no vectors of minilm were compared, or no word of the question tells
// passages apart.
func (t *QuestionTerms) Judge(embedder string, best []sdk.Candidate) Judgement {
	cosine, covered := math.NaN(), 0.
	for i, c := range best {
		if dense := float64(c.Dense); !math.IsNaN(dense) && !(cosine >= dense) {
			cosine = dense
		}
		if i < inspected && t.total > 0 {
			covered = max(covered, t.covered(searched(c)))
		}
	}
	if embedder != "minilm" || math.IsNaN(cosine) || t.total == 0 {
		return Judgement{Probability: math.NaN()}
	}
	p := 1 / (1 + math.Exp(-(offset + cosineWeight*cosine + coveredWeight*covered)))
	return Judgement{Unlikely: p < unlikely, Probability: p}
}

// QuestionTerms are the words of a question that tell passages apart, each with a weight.
type QuestionTerms struct {
	analyzer support.Analyzer
	weights  map[string]float64
	total    float64
}

// asking are words that turn a sentence into a question and that its answer seldom has. The
// analyzer english leaves out few of them, so they would seem rare.
var asking = strings.Fields("how what when where which who whom whose why i me my we us our you your he him his she her it its " +
	"do does did doing can could should would may might must shall will am is are was were be been has have had any some there about")

// english is an analyzer that leaves out the words of nearly every text.
var english = func() support.Analyzer {
	a, err := support.NamedAnalyzer("english")
	if err != nil {
		panic(err)
	}
	return a
}()

// QuestionTermsOf splits a question into words with the store's analyzer, by its name; with english
// if there is none. A word's weight is its inverse document frequency as in BM25, counted among the
// candidates of a search, so that rare words decide.
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
		weight := math.Log(1 + (n-float64(in[word])+.5)/(float64(in[word])+.5))
		t.weights[word] = weight
		t.total += weight
	}
	return t
}

// plain returns a question without words of nearly every English text or question. For an analyzer
// of another language it returns the question as it is.
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

// covered returns the share of the terms, by weight, that a text has, from 0 to 1.
func (t *QuestionTerms) covered(text string) float64 {
	sum := 0.0
	for word := range t.in(text) {
		sum += t.weights[word]
	}
	return min(1, sum/t.total)
}

// Densest returns the position of the first of the n successive texts, such as lines, that together
// have most of the terms by weight; 0 if none has any.
func (t *QuestionTerms) Densest(texts []string, n int) int {
	found := make([]map[string]bool, len(texts))
	for i, text := range texts {
		found[i] = t.in(text)
	}
	best, most := 0, 0.0
	for at := range max(0, len(texts)-n+1) {
		seen, sum := map[string]bool{}, 0.0
		for _, words := range found[at : at+n] {
			for word := range words {
				if !seen[word] {
					seen[word] = true
					sum += t.weights[word]
				}
			}
		}
		if sum > most+1e-9 {
			best, most = at, sum
		}
	}
	return best
}

// Mark puts before and after around the words of a line that are terms in any inflected form. It
// marks nothing in languages written without spaces, where it cannot tell words.
func (t *QuestionTerms) Mark(line, before, after string) string {
	var b strings.Builder
	inWord := func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.M, unicode.N) || r == '_'
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
