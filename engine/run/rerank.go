package run

import "github.com/racflow/racflow/sdk"

// rerank takes over what a reranker made of the candidates above: the best of
// them, with its scores; what the two sides scored stays.
func (s *stage) rerank(rec *record, ranked []sdk.Ranked) {
	above := rec.outputs[s.in.found].candidates
	best := make([]sdk.Candidate, min(len(ranked), s.TopK))
	for i := range best {
		best[i] = above[ranked[i].Candidate]
		best[i].Score = ranked[i].Score
	}
	out := &rec.outputs[s.index]
	out.candidates, out.reranked = best, true
}

// passOn hands on the candidates above of those records that the stage did not
// rerank: its when rule does not hold for them, or its failure is skipped. There
// are as many of them as of others, unless they are a knowledge as a whole.
func (s *stage) passOn(records []*record) {
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if out.reranked || out.failure != nil || out.missing != nil || rec.failure(s.in.needs) != nil {
			continue
		}
		above := rec.outputs[s.in.found].candidates
		n := min(len(above), s.TopK)
		if s.whole != nil {
			n = len(above)
		}
		out.candidates = above[:n:n]
	}
}

// listsOf returns what each stage that writes candidates left.
func (r *Run) listsOf(rec *record) []List {
	var all []List
	for i, s := range r.stages {
		if s != nil && (s.Retrieve != nil || s.Kind == sdk.KindRerank) {
			all = append(all, List{s.String(), rec.outputs[i].candidates})
		}
	}
	return all
}
