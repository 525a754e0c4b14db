package packet

import (
	"slices"

	"github.com/racflow/racflow/engine/outcome"
)

// votes are columns, of which those at the end are left out where nothing stands in them.
type votes struct {
	Voter    []int  `json:"voter,omitempty"`
	Answer   []int  `json:"answer,omitempty"`
	Weight   floats `json:"weight,omitempty"`
	Accepted []byte `json:"accepted,omitempty"` // 1: it is

	Reason      []int `json:"reason,omitempty"`
	Reading     []int `json:"reading,omitempty"`
	Explanation []int `json:"explanation,omitempty"`
	Model       []int `json:"model,omitempty"`
}

func (w *writer) votes(all []outcome.Vote) *votes {
	if all == nil {
		return nil
	}
	n := len(all)
	out := &votes{Voter: make([]int, n), Answer: make([]int, n), Weight: make(floats, 0, 8*n), Accepted: make([]byte, n)}
	for i := range all {
		v := &all[i]
		out.Voter[i], out.Answer[i] = w.text(v.Voter), w.text(v.Answer)
		out.Weight = append(out.Weight, floatsOf(v.Weight)...)
		if v.Accepted {
			out.Accepted[i] = 1
		}
		for _, c := range []struct {
			column *[]int
			text   string
		}{{&out.Reason, v.Reason}, {&out.Reading, v.Reading}, {&out.Explanation, v.Explanation}, {&out.Model, v.Model}} {
			if c.text != "" && *c.column == nil {
				*c.column = make([]int, n)
			}
			if c.text != "" {
				(*c.column)[i] = w.text(c.text)
			}
		}
	}
	return out
}

func (r *reader) votes(in *votes) []outcome.Vote {
	if in == nil {
		return nil
	}
	n := len(in.Voter)
	optional := func(column []int) bool { return len(column) == 0 || len(column) == n }
	weights := r.numbers(in.Weight, n)
	if len(in.Answer) != n || len(weights) != n || len(in.Accepted) != n ||
		!optional(in.Reason) || !optional(in.Reading) || !optional(in.Explanation) || !optional(in.Model) {
		r.fail("columns of %d votes have other lengths", n)
		return nil
	}
	all := make([]outcome.Vote, n)
	for i := range all {
		v := &all[i]
		v.Voter, v.Answer, v.Weight, v.Accepted = r.text(in.Voter[i]), r.text(in.Answer[i]), weights[i], in.Accepted[i] == 1
		for _, c := range []struct {
			column []int
			text   *string
		}{{in.Reason, &v.Reason}, {in.Reading, &v.Reading}, {in.Explanation, &v.Explanation}, {in.Model, &v.Model}} {
			if len(c.column) > 0 {
				*c.text = r.text(c.column[i])
			}
		}
	}
	return all
}

func (w *writer) rest(all []outcome.Rest) []int {
	if all == nil {
		return nil
	}
	out := make([]int, 0, 3*len(all))
	for _, one := range all {
		out = append(out, w.text(one.Voter), one.Votes, one.Accepted)
	}
	return out
}

func (r *reader) rest(in []int) []outcome.Rest {
	if in == nil || !r.tuples("votes left out", in, 3) {
		return nil
	}
	all := make([]outcome.Rest, 0, len(in)/3)
	for one := range slices.Chunk(in, 3) {
		all = append(all, outcome.Rest{Voter: r.text(one[0]), Votes: one[1], Accepted: one[2]})
	}
	return all
}
