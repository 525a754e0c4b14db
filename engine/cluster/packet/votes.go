package packet

import "github.com/racflow/racflow/engine/outcome"

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
	return flat(all, func(out []int, one outcome.Rest) []int {
		return append(out, w.text(one.Voter), one.Votes, one.Accepted)
	})
}

func (r *reader) rest(in []int) []outcome.Rest {
	return unflat(r, "votes left out", in, 3, func(one []int) outcome.Rest {
		return outcome.Rest{Voter: r.text(one[0]), Votes: one[1], Accepted: one[2]}
	})
}
