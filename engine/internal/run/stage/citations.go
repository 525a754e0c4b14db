package stage

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// uncited is the reason of a verdict whose answer cites no passage.
func uncited(supported []outcome.Citation) string {
	if len(supported) == 0 {
		return "it cites no passage, and none shares most of its words"
	}
	return "it cites no passage; those that are named share most of its words"
}

// takeUncited accepts a voter's first answer that cites no passage, because it is better than no answer. The answer is
// flagged. false: there is no such answer.
func (r *Record) takeUncited(stage int) bool {
	for _, sample := range r.outputs[stage].samples {
		for i := range sample.Answers {
			if a := &sample.Answers[i]; a.Reason == support.NoCitation {
				a.Accepted, a.Reason = true, ""
				return true
			}
		}
	}
	return false
}

// citations returns the passages that the elected answer cites, in the answer's order. If it cites none, cites is
// false, and the passages that support the answer are returned. nil: no voter gave the answer to a prompt with
// passages.
func (g *Graph) citations(rec *Record) (all []outcome.Citation, cites bool) {
	if rec.verdict.Answer == "" {
		return nil, true
	}
	for _, v := range g.voters {
		for i, s := range rec.outputs[v].samples {
			p, found := g.promptOf(rec, v, i)
			if len(p.Passages) == 0 || !accepts(s, rec.verdict.Answer) {
				continue
			}
			passage := func(id string) sdk.Candidate {
				if at := slices.IndexFunc(found, func(c sdk.Candidate) bool { return c.ID == id }); at >= 0 {
					return found[at]
				}
				return sdk.Candidate{ID: id, Dense: sdk.Unscored, Lexical: sdk.Unscored}
			}
			numbers, _ := support.Citations(rec.verdict.Answer, len(p.Passages))
			if cites = len(numbers) > 0; !cites {
				numbers = supporting(rec.verdict.Answer, len(p.Passages), func(n int) string { return passage(p.Passages[n-1]).Text })
			}
			all := make([]outcome.Citation, 0, len(numbers))
			for _, n := range numbers {
				all = append(all, outcome.Citation{Number: n, Passage: passage(p.Passages[n-1])})
			}
			return all, cites
		}
	}
	return nil, true
}

const (
	maxSupporting = 2      // maximum of passages for an answer without citations
	leastShared   = 1 / 3. // least share of the answer's words in a supporting passage
	leastWord     = 4      // least letters of a word that counts: shorter words are everywhere
)

// supporting returns the numbers, from 1, of the passages with the most words of an answer, the best first.
func supporting(answer string, passages int, text func(n int) string) []int {
	words := wordsOf(answer)
	shared := make([]float64, passages+1)
	var numbers []int
	for n := 1; n <= passages; n++ {
		for w := range wordsOf(text(n)) {
			if words[w] {
				shared[n] += 1 / float64(len(words))
			}
		}
		if shared[n] >= leastShared {
			numbers = append(numbers, n)
		}
	}
	slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(shared[b], shared[a]) })
	return numbers[:min(len(numbers), maxSupporting)]
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len([]rune(w)) >= leastWord {
			words[w] = true
		}
	}
	return words
}
