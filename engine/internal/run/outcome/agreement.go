package outcome

import (
	"slices"

	"github.com/racflow/racflow/engine/result"
)

// Agreement counts how often a voter gives the same answer as the other voters. Their answer is the commonest; if
// several are equally common, the first.
type Agreement struct {
	Voter       string
	Items, Same int

	own, others map[string]int // counts of each answer
}

// leastCompared is the least number of items for which Agreement is reported.
const leastCompared = 10

// Chance is the share of items on which independent voters would agree by chance, if they gave their answers with
// these frequencies.
func (a *Agreement) Chance() float64 {
	sum := 0.0
	for answer, n := range a.own {
		sum += float64(n) * float64(a.others[answer])
	}
	return sum / float64(a.Items) / float64(a.Items)
}

// ByChance returns the Callers whose agreement with the others is at most a tenth of the way from chance to certainty
// (Cohen's kappa, "A coefficient of agreement for nominal scales", 1960), in file order.
func (t *Totals) ByChance() (all []Agreement) {
	for _, a := range t.agreements {
		if chance := a.Chance(); a.Items >= leastCompared && float64(a.Same)/float64(a.Items)-chance <= .1*(1-chance) && chance < 1 {
			all = append(all, *a)
		}
	}
	return all
}

// countAgreement compares the answers of Callers and the other voters to an item. The votes of a voter must be
// adjacent.
func (t *Totals) countAgreement(votes []result.Vote) {
	type ballot struct{ voter, answer string }
	var all []ballot
	for len(votes) > 0 {
		end := slices.IndexFunc(votes, func(v result.Vote) bool { return v.Voter != votes[0].Voter })
		if end < 0 {
			end = len(votes)
		}
		if answer := favourite(votes[:end]); answer != "" {
			all = append(all, ballot{votes[0].Voter, answer})
		}
		votes = votes[end:]
	}
	for i, one := range all {
		if !slices.Contains(t.Callers, one.voter) {
			continue
		}
		var rest []result.Vote
		for j, other := range all {
			if j != i {
				rest = append(rest, result.Vote{Answer: other.answer, Weight: 1, Accepted: true})
			}
		}
		others := favourite(rest)
		if others == "" {
			continue
		}
		at := slices.IndexFunc(t.agreements, func(a *Agreement) bool { return a.Voter == one.voter })
		if at < 0 {
			at = len(t.agreements)
			t.agreements = append(t.agreements, &Agreement{Voter: one.voter, own: map[string]int{}, others: map[string]int{}})
		}
		a := t.agreements[at]
		a.Items++
		if one.answer == others {
			a.Same++
		}
		a.own[cut(one.answer)]++
		a.others[cut(others)]++
	}
}

// favourite returns the accepted answer with the greatest weight, the first if several tie; empty: there is none.
func favourite(votes []result.Vote) (best string) {
	weights := map[string]float64{}
	for _, v := range votes {
		if v.Accepted {
			weights[v.Answer] += v.Weight
		}
	}
	for _, v := range votes {
		if weights[v.Answer] > weights[best] {
			best = v.Answer
		}
	}
	return best
}
