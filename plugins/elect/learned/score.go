package learned

import "math"

// tie is the distance of scores at which labels tie, so that rounding decides nothing.
const tie = 1e-9

// score returns the score of each label: its log-odds against one that nobody votes for.
// It reuses scores.
func (v votes) score(scores, weights []float64) []float64 {
	scores = append(scores[:0], make([]float64, v.labels)...)
	for _, x := range v.all {
		scores[x.label] += weights[x.voter] * x.strength
	}
	return scores
}

// winner is the label with the greatest score, of those that tie the one that was voted
// for first; where the leader has votes, of those that it gave most. -1: there is none.
func (v votes) winner(scores []float64, leader int) int {
	best := -1
	if leader >= 0 {
		most := 0.0
		for _, x := range v.all {
			if int(x.voter) == leader {
				most = max(most, x.strength)
			}
		}
		for _, x := range v.all {
			if int(x.voter) == leader && x.strength >= most-tie && (best < 0 || scores[x.label] > scores[best]+tie) {
				best = int(x.label)
			}
		}
	}
	if best >= 0 {
		return best
	}
	for label, s := range scores {
		if s > 0 && (best < 0 || s > scores[best]+tie) {
			best = label
		}
	}
	return best
}

// softmax makes probabilities of scores. The labels that nobody votes for, of so many that
// there are, have the score 0. It returns the logarithm of what the scores are divided by.
func (v votes) softmax(scores []float64, labels int) float64 {
	most := 0.0
	for _, s := range scores {
		most = max(most, s)
	}
	sum := float64(max(labels-(v.labels-v.none), 0)) * math.Exp(-most)
	for i, s := range scores {
		scores[i] = math.Exp(s - most)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
	return most + math.Log(sum)
}
