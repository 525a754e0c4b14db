package packet

import (
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// cited are citations.
type cited struct {
	Numbers []int `json:"numbers,omitempty"`
	found
}

func (w *writer) cited(all []outcome.Citation) *cited {
	if all == nil {
		return nil
	}
	out, passages := &cited{}, make([]sdk.Candidate, len(all))
	for i, c := range all {
		out.Numbers, passages[i] = append(out.Numbers, c.Number), c.Passage
	}
	out.found = *w.found(passages)
	return out
}

func (r *reader) cited(in *cited) []outcome.Citation {
	if in == nil {
		return nil
	}
	passages := r.found(&in.found)
	if len(passages) != len(in.Numbers) || in.As != 0 {
		r.fail("%d passages have %d numbers", len(passages), len(in.Numbers))
		return nil
	}
	all := make([]outcome.Citation, len(passages))
	for i := range all {
		all[i] = outcome.Citation{Number: in.Numbers[i], Passage: passages[i]}
	}
	return all
}
