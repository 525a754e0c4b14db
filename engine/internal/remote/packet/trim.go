package packet

import (
	"slices"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Trim returns answers without data that no later step reads, if the journal keeps details of some
// items (engine.Options.Keep; empty: notable ones) and, unless lists is set, nothing reads the
// texts of lists (engine.Options.Lists). It does not change the given answers.
func Trim(a run.Answers, keep journal.Keep, lists bool) run.Answers {
	if lists {
		return a
	}
	a.Results = slices.Clone(a.Results)
	for i := range a.Results {
		trim(&a.Results[i], keep == journal.KeepAll)
	}
	return a
}

func trim(r *outcome.Result, all bool) {
	if r.Rest == nil {
		r.Votes, r.Rest = shorten(r.Votes)
	}
	if !r.RetrievalOnly {
		r.Candidates = nil
	}
	r.Citations = each(r.Citations, func(c outcome.Citation) outcome.Citation { // the metadata name a passage's source
		c.Passage.Text, c.Passage.Context = "", ""
		return c
	})
	if !all && !journal.Notable(r) {
		r.Lists, r.Prompts, r.Requests, r.Rules, r.Retries = nil, nil, nil, nil, nil
		return
	}
	given := r.Lists
	r.Lists = slices.Clone(given)
	for i := range r.Lists {
		l := &r.Lists[i]
		switch {
		case l.Whole && len(l.Candidates) > 0: // the journal only needs to know that there are some
			l.Candidates = bare(l.Candidates[:1])
		case r.RetrievalOnly && same(l.Candidates, r.Candidates): // r has their texts anyway
		default:
			l.Candidates = bare(l.Candidates)
		}
	}
}

// shorten returns outcome.Shorten's result if it drops any vote, else all votes.
func shorten(votes []outcome.Vote) ([]outcome.Vote, []outcome.Rest) {
	if kept, rest := outcome.Shorten(votes); rest != nil {
		return kept, rest
	}
	return votes, nil
}

// bare reduces candidates to what a journal stores of them.
func bare(all []sdk.Candidate) []sdk.Candidate {
	return each(all, func(c sdk.Candidate) sdk.Candidate {
		return sdk.Candidate{ID: c.ID, Score: c.Score, Dense: c.Dense, Lexical: c.Lexical}
	})
}

// each applies of to each element; nil stays nil.
func each[A, B any](all []A, of func(A) B) []B {
	if all == nil {
		return nil
	}
	out := make([]B, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// same reports whether two slices share their memory, or are both nil.
func same[T any](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b) && (a == nil) == (b == nil)
	}
	return len(a) == len(b) && &a[0] == &b[0]
}
