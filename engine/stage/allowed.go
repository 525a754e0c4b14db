package stage

import (
	"slices"

	"github.com/racflow/racflow/sdk"
)

// allowed returns the records that a voter is to be asked about (Options.Ask).
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

// mayHold reports whether the when rule of a voter, which does not hold for an item, may
// do so once the voters above have been asked that were not: it reads their votes.
func (s *stage) mayHold(rec *Record) bool {
	if !s.paid() || !s.When.Reads("margin") && !s.When.Reads("agreement") && !s.When.Reads("votes") {
		return false
	}
	return slices.ContainsFunc(s.in.voters, func(v int) bool { return rec.outputs[v].withheld })
}
