package stage

import (
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// mayAbstain reports whether a failure of an item is that a voter's service refuses it,
// and others can vote. Whether they have, only the election knows.
func (s *stage) mayAbstain(f *outcome.Failure) bool {
	if sdk.CodeOf(f.Err) != sdk.CodeRefused || s.graph.elect < 0 {
		return false
	}
	voters := s.graph.stages[s.graph.elect].in.voters
	return len(voters) > 1 && slices.Contains(voters, s.index)
}

// insist fails an item for which nobody has voted, as its voters abstain.
func (s *stage) insist(rec *Record) {
	for _, v := range s.in.voters {
		if out := &rec.outputs[v]; out.refused && len(rec.samples(s.in.voters)) == 0 {
			out.failure, out.skipped, out.refused = out.skipped, nil, false
		}
	}
}

// votes are all answers of an item's voters. One that abstains has a vote without an
// answer, and with the reason.
func (g *Graph) votes(rec *Record) []outcome.Vote {
	all := []outcome.Vote{}
	for _, v := range g.voters {
		out := &rec.outputs[v]
		all = append(all, votes(out.samples)...)
		if out.refused {
			all = append(all, outcome.Vote{Voter: g.stages[v].Name, Reason: out.skipped.Err.Error()})
		}
	}
	return all
}
