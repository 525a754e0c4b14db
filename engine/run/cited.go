package run

import (
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
	"github.com/racflow/racflow/sdk/ballot"
)

// Citation is a passage that an answer cites.
type Citation struct {
	Number int // in the prompt, and so in the answer
	// Passage is the candidate that the prompt showed. Where an earlier part of the
	// run answered the item, it has its id, and of its metadata what says where it
	// is from.
	Passage sdk.Candidate
}

// Origins are the metadata that say where a passage is from, in the order in which
// they are told.
var Origins = []string{"path", "title", "headings", "first_line", "last_line", "first_page", "last_page"}

// citations returns what the elected answer cites, in the order in which it does;
// nil where no voter gave it to a prompt with passages.
func (r *Run) citations(rec *record) []Citation {
	if rec.verdict.Answer == "" {
		return nil
	}
	for _, v := range r.voters {
		for i, s := range rec.outputs[v].samples {
			p, found := r.asked(rec, v, i)
			if len(p.Passages) == 0 || !accepts(s, rec.verdict.Answer) {
				continue
			}
			numbers, _ := answer.Citations(rec.verdict.Answer, len(p.Passages))
			all := make([]Citation, 0, len(numbers))
			for _, n := range numbers {
				id := p.Passages[n-1]
				c := Citation{n, sdk.Candidate{ID: id, Dense: sdk.Unscored, Lexical: sdk.Unscored}}
				if at := slices.IndexFunc(found, func(c sdk.Candidate) bool { return c.ID == id }); at >= 0 {
					c.Passage = found[at]
				}
				all = append(all, c)
			}
			return all
		}
	}
	return nil
}

// asked returns the prompt that a sample of a voter answers, and the candidates
// that it was written from. Samples take an item's prompts in turn.
func (r *Run) asked(rec *record, voter, sample int) (sdk.Prompt, []sdk.Candidate) {
	in := r.stages[voter].in
	if !in.sees(in.prompt) || len(rec.outputs[in.prompt].prompts) == 0 {
		return sdk.Prompt{}, nil
	}
	prompts := rec.outputs[in.prompt].prompts
	var found []sdk.Candidate
	if at := r.stages[in.prompt].in.found; at >= 0 {
		found = rec.outputs[at].candidates
	}
	return prompts[sample%len(prompts)], found
}

// accepts reports whether an answer is among the accepted ones of a sample.
func accepts(s sdk.Sample, label string) bool {
	return slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted && a.Label == label })
}

// notAnswered is why there is no answer where the voters say that the passages that
// they were shown do not give one.
const notAnswered = "the passages do not answer this"

// decided takes over what an election decides. That no label fits means another
// thing where the answers are texts.
func (r *Run) decided(rec *record, verdict sdk.Verdict) {
	rec.verdict = verdict
	if verdict.Answer != "" || verdict.Reason != ballot.NoLabelFits {
		return
	}
	for _, v := range r.voters {
		for i, s := range rec.outputs[v].samples {
			if p, _ := r.asked(rec, v, i); p.Passages != nil && accepts(s, "") {
				rec.verdict.Reason = notAnswered
				return
			}
		}
	}
}
