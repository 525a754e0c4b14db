package doctor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// halved are rows of labels that voters tell apart, of which one has two names that nothing tells apart.
// Half of the rows of label 1 and of label 2 look alike with some probability.
func halved(n int, alike float64) (rows []VotedRow) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		label, other := i%8, -1
		looks := label
		switch {
		case label == 7: // the other name of label 0
			looks = 0
		case label == 1 && random.Float64() < alike:
			looks = 2
		}
		if looks == 0 {
			other = 7
		}
		row, sum := VotedRow{Label: fmt.Sprint("label ", label), Votes: votes{}}, 0.
		for l := range 8 {
			p := math.Exp(random.NormFloat64())
			if l == looks || l == other {
				p *= 50
			}
			row.Votes[fmt.Sprint("label ", l)] = p
			sum += p
		}
		for l := range row.Votes {
			row.Votes[l] /= sum
		}
		rows = append(rows, row)
	}
	return rows
}

// TestConfusedByChance: only the two names of one label are found, and not in few rows.
func TestConfusedByChance(t *testing.T) {
	for _, c := range []struct {
		n     int
		alike float64
		want  int
	}{{800, 0, 1}, {800, .4, 1}, {16, 0, 0}} {
		found := confusions(halved(c.n, c.alike))
		if len(found) != c.want || c.want > 0 && !slices.Equal([]string{found[0].rare, found[0].common}, []string{"label 7", "label 0"}) {
			t.Errorf("%d rows, %v of label 1 look like label 2: %+v", c.n, c.alike, found)
		}
	}
}
