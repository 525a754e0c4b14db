package packet

import (
	"slices"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Trim returns answers without what nobody reads where the journal keeps what was seen of some
// items (engine.Options.Keep; empty: notable ones) and, unless lists is set, nothing reads
// the texts of lists (engine.Options.Lists). The given answers stay as they are.
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
	r.Citations = each(r.Citations, func(c outcome.Citation) outcome.Citation { // metadata say where a passage is from
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
		case l.Whole && len(l.Candidates) > 0: // the journal keeps that there are some
			l.Candidates = bare(l.Candidates[:1])
		case r.RetrievalOnly && same(l.Candidates, r.Candidates): // they have their texts anyway
		default:
			l.Candidates = bare(l.Candidates)
		}
	}
}

// shorten is outcome.Shorten, where that leaves something out.
func shorten(votes []outcome.Vote) ([]outcome.Vote, []outcome.Rest) {
	if kept, rest := outcome.Shorten(votes); rest != nil {
		return kept, rest
	}
	return votes, nil
}

// bare are candidates with what a journal keeps of them.
func bare(all []sdk.Candidate) []sdk.Candidate {
	return each(all, func(c sdk.Candidate) sdk.Candidate {
		return sdk.Candidate{ID: c.ID, Score: c.Score, Dense: c.Dense, Lexical: c.Lexical}
	})
}

// each makes something of each element; nil of nil.
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

// same reports whether two slices are the same memory, or are both nil.
func same[T any](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b) && (a == nil) == (b == nil)
	}
	return len(a) == len(b) && &a[0] == &b[0]
}
