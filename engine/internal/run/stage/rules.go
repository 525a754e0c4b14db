package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// mayAbstain reports whether an item failed because a voter's service refuses it, and other voters
// exist. Only the election knows whether they voted.
func (s *stage) mayAbstain(f *outcome.Failure) bool {
	if sdk.CodeOf(f.Err) != sdk.CodeRefused || s.graph.elect < 0 {
		return false
	}
	voters := s.graph.stages[s.graph.elect].in.voters
	return len(voters) > 1 && slices.Contains(voters, s.index)
}

// insist fails an item that has no vote because voters' services refused it.
func (s *stage) insist(rec *Record) {
	for _, v := range s.in.voters {
		if out := &rec.outputs[v]; out.refused && len(rec.samples(s.in.voters)) == 0 {
			out.failure, out.skipped, out.refused = out.skipped, nil, false
		}
	}
}

// votes returns all answers of an item's voters. An abstaining voter has a vote with a reason
// instead of an answer.
func (g *Graph) votes(rec *Record) []result.Vote {
	all := []result.Vote{}
	for _, v := range g.voters {
		out := &rec.outputs[v]
		all = append(all, votes(out.samples)...)
		if out.refused {
			all = append(all, result.Vote{Voter: g.stages[v].Name, Reason: out.skipped.Err.Error()})
		}
	}
	return all
}

// allowed returns the records that a voter may be asked about (Options.Ask).
func (s *stage) allowed(records []*Record) []*Record {
	if !s.paid() {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), func(rec *Record) bool {
		if s.graph.options.Ask(s.Stage, rec.Row.Line, s.item(rec)) {
			return false
		}
		rec.outputs[s.index].withheld = true
		return true
	})
}

// paid reports whether Options.Ask decides about the stage.
func (s *stage) paid() bool {
	return s.graph.options.Ask != nil && s.Kind == sdk.KindSample && s.Info.Network
}

// mayHold reports whether a voter's when rule, which does not hold for an item, may hold after
// earlier voters were asked that Options.Ask excluded. This is possible if the rule reads their
// votes.
func (s *stage) mayHold(rec *Record) bool {
	if !s.paid() || !s.When.Reads("margin") && !s.When.Reads("agreement") && !s.When.Reads("votes") {
		return false
	}
	return slices.ContainsFunc(s.in.voters, func(v int) bool { return rec.outputs[v].withheld })
}

// env returns the values of a record that a rule of the stage reads. It computes only these values.
func (s *stage) env(rec *Record, r *rule.Rule) *rule.Env {
	e := &rule.Env{Item: s.item(rec), Labels: s.labels}
	switch {
	case s.Retrieve == nil && s.Kind != sdk.KindRerank:
	case r == s.When: // a when rule reads the candidates from above
		e.Labels = s.above
	default: // keep or fallback: the rule reads the stage's own candidates
		e.Item.Candidates = rec.outputs[s.index].candidates
	}
	if r.Reads("candidate_labels") {
		e.CandidateLabels = candidateLabels(s.graph.form, e.Item.Candidates)
	}
	// A verdict has its own agreement; see flag.
	if r.Reads("margin") || r.Reads("agreement") && r != s.Flag {
		e.Margin, e.Agreement = margin(s.graph.form, rec.samples(s.in.voters))
	}
	if r.Reads("votes") {
		for _, v := range votes(rec.samples(s.in.voters)) {
			e.Votes = append(e.Votes, rule.Vote{Voter: v.Voter, Answer: v.Answer, Weight: v.Weight, Accepted: v.Accepted})
		}
	}
	return e
}

// margin returns the voters' distance from a tie, and the share of the best label.
func margin(f sdk.LabelForm, samples []sdk.Sample) (margin, agreement float64) {
	if f.Many {
		mean := ballot.MeanSet(samples, nil)
		return ballot.MarginSet(mean), ballot.Agreement(mean)
	}
	mean := ballot.Mean(samples, nil)
	return ballot.Margin(mean), ballot.Agreement(mean)
}

func candidateLabels(f sdk.LabelForm, candidates []sdk.Candidate) []string {
	var labels []string
	seen := map[string]bool{}
	for _, c := range candidates {
		for _, label := range f.Split(c.Label) {
			if !seen[label] {
				seen[label] = true
				labels = append(labels, label)
			}
		}
	}
	return labels
}

// votes lists the answers of samples one by one.
func votes(samples []sdk.Sample) []result.Vote {
	n := 0
	for _, s := range samples {
		n += len(s.Answers)
	}
	all := make([]result.Vote, 0, n)
	for _, s := range samples {
		for _, a := range s.Answers {
			all = append(all, result.Vote{
				Voter: s.Voter, Answer: a.Label, Weight: a.Weight, Accepted: a.Accepted, Reason: a.Reason,
				Reading: a.Reading, Explanation: a.Explanation, Model: s.Model,
			})
		}
	}
	return all
}

// when returns the records that a stage works on: without an earlier failure, and with a when rule
// that holds. If a stage that this stage needs is missing for a record, this stage is marked as
// missing, too.
func (s *stage) when(ctx context.Context, records []*Record) []*Record {
	var wanted []*Record
	for _, rec := range records {
		if s.Block == "elect" {
			s.insist(rec)
		}
		if rec.failure(s.in.needs) != nil {
			continue
		}
		lacks := s.lacks(rec)
		if s.When != nil && (lacks == nil || s.asks(rec)) {
			ok, err := s.When.Eval(ctx, s.env(rec, s.When))
			if err != nil {
				rec.fail(s, fmt.Errorf("when: %w", err))
				continue
			}
			if !ok {
				rec.outputs[s.index].idle = true
				rec.note(s, outcome.Rule{Rule: outcome.RuleWhen})
				if s.mayHold(rec) {
					s.allowed([]*Record{rec})
				}
				continue
			}
		}
		if lacks != nil {
			rec.outputs[s.index].missing = &outcome.Failure{Stage: s.String(), Err: lacks.Err}
			continue
		}
		wanted = append(wanted, rec)
	}
	return wanted
}

// filter evaluates the search filter of each record, and returns the records without an error.
func (s *stage) filter(ctx context.Context, records []*Record) []*Record {
	var bound []*Record
	for _, rec := range records {
		f, err := s.Retrieve.Filter.Bind(ctx, &rule.Env{Item: s.item(rec)})
		if err != nil {
			rec.fail(s, fmt.Errorf("filter: %w", err))
			continue
		}
		rec.outputs[s.index].filter = f
		bound = append(bound, rec)
	}
	return bound
}

// applyRules applies the rules that read the stage's output.
func (s *stage) applyRules(ctx context.Context, rec *Record) error {
	switch s.Block {
	case "retrieve", "rerank":
		return s.keep(ctx, rec)
	case "sample":
		return s.accept(ctx, rec, rec.outputs[s.index].samples)
	case "elect":
		return s.flag(ctx, rec)
	}
	return nil
}

// keep drops the candidates for which the keep rule does not hold.
func (s *stage) keep(ctx context.Context, rec *Record) error {
	if s.Keep == nil {
		return nil
	}
	out := &rec.outputs[s.index]
	e := s.env(rec, s.Keep)
	var kept []sdk.Candidate
	for i := range out.candidates {
		e.Candidate, e.Rank = &out.candidates[i], i+1
		ok, err := s.Keep.Eval(ctx, e)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		if ok {
			kept = append(kept, out.candidates[i])
		}
	}
	if n, all := len(kept), len(out.candidates); n < all {
		rec.note(s, outcome.Rule{Rule: outcome.RuleKeep, N: all - n, Of: all})
		out.candidates = kept // otherwise the list stays shared by all items, if it is the whole knowledge
	}
	return nil
}

// notAccepted is the reason of an answer that an accept rule refuses.
const notAccepted = "accept: the rule does not hold"

// accept marks the answers that the stage's rule refuses. It skips the answer that no label fits:
// the rule is about labels.
func (s *stage) accept(ctx context.Context, rec *Record, samples []sdk.Sample) error {
	if s.Accept == nil {
		return nil
	}
	e := s.env(rec, s.Accept)
	refused, asked := 0, 0
	for _, sample := range samples {
		for i := range sample.Answers {
			a := &sample.Answers[i]
			if !a.Accepted || a.Label == "" {
				continue
			}
			e.Answer = a.Label
			asked++
			var err error
			if a.Accepted, err = s.Accept.Eval(ctx, e); err != nil {
				return fmt.Errorf("accept: %w", err)
			}
			if !a.Accepted {
				a.Reason = notAccepted
				refused++
			}
		}
	}
	if refused > 0 || asked > 0 && rec.noted(s, outcome.RuleAccept) {
		rec.note(s, outcome.Rule{Rule: outcome.RuleAccept, N: refused, Of: asked})
	}
	return nil
}

// flag decides whether a person should look at the verdict.
func (s *stage) flag(ctx context.Context, rec *Record) error {
	var cites bool
	if rec.citations, cites = s.graph.citations(rec); !cites {
		rec.flagged, rec.verdict.Reason = true, cmp.Or(rec.verdict.Reason, uncited(rec.citations))
		return nil
	}
	if s.Flag == nil {
		return nil
	}
	e := s.env(rec, s.Flag)
	e.Answer, e.Agreement, e.Confidence, e.Unknown = rec.verdict.Answer, rec.verdict.Agreement, cmp.Or(rec.verdict.Confidence, rec.verdict.Agreement), rec.verdict.Unknown
	var err error
	if rec.flagged, err = s.Flag.Eval(ctx, e); err != nil {
		return fmt.Errorf("flag: %w", err)
	}
	if rec.flagged {
		rec.note(s, outcome.Rule{Rule: outcome.RuleFlag})
	}
	return nil
}
