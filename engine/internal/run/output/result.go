package output

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Of returns the result of an item.
func Of(r outcome.Result) result.Result {
	out := result.Result{
		ID: r.ID, Text: strings.ToValidUTF8(r.Text, "\uFFFD"), Expected: r.Expected, Verdict: r.Verdict, Missing: r.Without(),
		Votes: Votes(r.Votes), Fields: r.Fields, Usage: r.Usage, Cost: r.Cost,
	}
	out.Agreement, out.Confidence, out.Unknown = round(r.Agreement), estimated(r.Confidence), estimated(r.Unknown)
	out.Labels = slices.Clone(r.Labels)
	for i := range out.Labels {
		out.Labels[i].Confidence = estimated(out.Labels[i].Confidence)
	}
	if r.Failure != nil {
		out.Error = &result.Failure{File: r.File, Line: cmp.Or(r.FileLine, r.Line), Stage: r.Failure.Stage, Message: r.Failure.Err.Error()}
	} else if out.Answer = result.Answer(r.Answer); r.Answer != "" && !r.FreeText && !r.Form.Many {
		out.RunnerUp = runnerUp(outcome.Heaviest(r.Votes), r.Answer)
	}
	for _, c := range r.Citations {
		m := c.Passage.Meta
		out.Citations = append(out.Citations, result.Citation{
			Number: c.Number, ID: c.Passage.ID, Path: m["path"], Title: m["title"], Headings: m["headings"],
			FirstLine: m["first_line"], LastLine: m["last_line"], FirstPage: m["first_page"], LastPage: m["last_page"],
		})
	}
	if r.RetrievalOnly {
		out.Candidates = Candidates(r.Candidates)
	}
	return out
}

// Votes returns the votes of an item as results show them.
func Votes(votes []result.Vote) []result.Vote {
	all := outcome.Heaviest(votes)
	for i := range all {
		all[i].Weight = round(all[i].Weight)
	}
	return all
}

// Candidates returns the candidates of an item as results show them, best first.
func Candidates(found []sdk.Candidate) []result.Candidate {
	var all []result.Candidate
	for _, c := range found {
		all = append(all, result.Candidate{
			ID: c.ID, Text: c.Text, Label: c.Label, Meta: c.Meta,
			Score: round(float64(c.Score)), Dense: scored(c.Dense), Lexical: scored(c.Lexical),
		})
	}
	return all
}

// runnerUp returns the strongest answer besides the elected answer, with equal weights for all
// voters; empty: there is none.
func runnerUp(votes []result.Vote, elected string) string {
	for _, share := range ballot.Mean(Samples(votes), nil) {
		if share.Label != elected {
			return share.Label
		}
	}
	return ""
}

// Samples turns votes into one sample per voter. The votes of a voter must be adjacent.
func Samples(votes []result.Vote) (samples []sdk.Sample) {
	for _, v := range votes {
		if n := len(samples); n == 0 || samples[n-1].Voter != v.Voter {
			samples = append(samples, sdk.Sample{Voter: v.Voter})
		}
		s := &samples[len(samples)-1]
		s.Answers = append(s.Answers, sdk.Answer{Label: v.Answer, Weight: v.Weight, Accepted: v.Accepted})
	}
	return samples
}

func scored(score float32) *float64 {
	if math.IsNaN(float64(score)) {
		return nil
	}
	v := round(float64(score))
	return &v
}

// estimated rounds a probability. An estimate stays above 0, because 0 means that there is no
// estimate.
func estimated(p float64) float64 {
	if p > 0 {
		return max(round(p), 1e-6)
	}
	return p
}

// round keeps six decimals: later decimals depend on the order of addition.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
