package outcome

import "slices"

// Rest are votes of a distribution that a result is without: nobody reads more of them than how
// many they are.
type Rest struct {
	Voter           string
	Votes, Accepted int
}

// Shorten returns votes without those that make no difference to a run: of a distribution with
// many labels, all but the heaviest ones (Heaviest), the heaviest accepted one, and one for each
// reason why some are not accepted. The rest is counted.
func Shorten(votes []Vote) (kept []Vote, rest []Rest) {
	var before []string // voters
	for from := 0; from < len(votes); {
		to := from + 1
		for to < len(votes) && votes[to].Voter == votes[from].Voter {
			to++
		}
		group := votes[from:to]
		again := slices.Contains(before, group[0].Voter) || slices.ContainsFunc(votes[to:], func(v Vote) bool { return v.Voter == group[0].Voter })
		before, from = append(before, group[0].Voter), to
		if len(group) <= maxAnswers+1 || again || !distribution(group) {
			kept = append(kept, group...)
			continue
		}
		less, accepted, reasons := Rest{Voter: group[0].Voter}, false, map[string]bool{"": true}
		for i, v := range group {
			switch {
			case i <= maxAnswers, v.Accepted && !accepted, !v.Accepted && !reasons[v.Reason]:
				kept = append(kept, v)
			default:
				if less.Votes++; v.Accepted {
					less.Accepted++
				}
			}
			if accepted = accepted || v.Accepted; !v.Accepted {
				reasons[v.Reason] = true
			}
		}
		if less.Votes > 0 {
			rest = append(rest, less)
		}
	}
	return kept, rest
}

// distribution reports whether the votes of a voter are one: a share for each label, the
// heaviest first. The first may be all.
func distribution(votes []Vote) bool {
	labels := make(map[string]bool, len(votes))
	for i := range votes {
		v := &votes[i]
		if !(v.Weight <= 1) || i > 0 && !(v.Weight < 1 && v.Weight <= votes[i-1].Weight) || labels[v.Answer] { // a weight may be no number
			return false
		}
		labels[v.Answer] = true
	}
	return true
}
