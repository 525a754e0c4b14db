package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mathext"
)

// This file finds pairs of labels that are confused by chance: voters that have not seen their rows put
// them into the one as often as into the other, whichever is theirs. Such labels may mean the same.
//
// A row of one of two labels is a trial, a success if its own label has more votes than the other one. The
// larger label counts as much as the smaller, so that voters gain nothing by naming the commoner one.
// A pair is proposed if two tests agree. Successes are no more than chance gives (one-sided, at 0.05). And
// they are too few for labels of which voters tell three rows in four apart: at 0.05 divided by the number of
// pairs (Bonferroni). So few rows never prove a pair, and ten times the labels need half as many rows again.
// Rows that voters put elsewhere are no trials; a pair with more of those than trials is left out.

const (
	byChance = .05
	apart    = .75 // share of successes of labels that voters tell apart
)

// confused is a pair of labels that may be one.
type confused struct {
	rare, common string  // by their rows
	successes    int     // of trials
	rows         int     // trials
	p            float64 // probability of so few, if voters tell the labels apart
}

// tally counts the rows of one label in trials with another.
type tally struct{ successes, rows, elsewhere int }

// confusions returns pairs of labels that are confused by chance, the surest first.
func confusions(votes []VotedRow) (all []confused) {
	byLabel := map[string][]int{}
	best := make([]string, len(votes))
	for i, row := range votes {
		byLabel[row.Label] = append(byLabel[row.Label], i)
		best[i] = row.likeliest()
	}
	seen := map[[2]string]bool{}
	pairs := float64(len(byLabel)*(len(byLabel)-1)) / 2
	for i, row := range votes {
		c := confused{rare: row.Label, common: best[i]}
		if len(byLabel[c.common]) < len(byLabel[c.rare]) || len(byLabel[c.common]) == len(byLabel[c.rare]) && c.common > c.rare {
			c.rare, c.common = c.common, c.rare
		}
		key := [2]string{c.rare, c.common}
		if best[i] == row.Label || byLabel[best[i]] == nil || seen[key] {
			continue
		}
		seen[key] = true
		var sides [2]tally
		for side, label := range []string{c.rare, c.common} {
			for _, of := range byLabel[label] {
				sides[side].add(votes[of], best[of], [2]string{c.common, c.rare}[side])
			}
		}
		if c.test(sides) && c.p < byChance/pairs {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b confused) int {
		return cmp.Or(cmp.Compare(a.p, b.p), strings.Compare(a.rare, b.rare), strings.Compare(a.common, b.common))
	})
	return all
}

// likeliest returns the label with the most votes; of several the row's own or the first.
func (r VotedRow) likeliest() string {
	best := r.Label
	for _, label := range slices.Sorted(maps.Keys(r.Votes)) {
		if r.Votes[label] > r.Votes[best] {
			best = label
		}
	}
	return best
}

func (t *tally) add(row VotedRow, best, other string) {
	switch {
	case best != row.Label && best != other:
		t.elsewhere++
		return
	case row.Votes[row.Label] > row.Votes[other]:
		t.successes++
	}
	t.rows++
}

// test sets what the trials of both labels give, and reports whether successes are no more than chance
// gives.
func (c *confused) test(sides [2]tally) bool {
	a, b := sides[0], sides[1]
	least := min(a.rows, b.rows)
	if least == 0 || a.elsewhere+b.elsewhere > a.rows+b.rows {
		return false
	}
	c.rows = 2 * least
	c.successes = int(math.Round(float64(least) * (float64(a.successes)/float64(a.rows) + float64(b.successes)/float64(b.rows))))
	c.p = atMost(c.successes, c.rows, apart)
	return atMost(c.rows-c.successes, c.rows, .5) > byChance
}

// merges adds the pairs of labels that may be one.
func (k *Source) merges(votes []VotedRow, r *Report) {
	found := confusions(votes)
	if len(found) == 0 {
		return
	}
	f := Finding{Check: "merge", Severity: Warning, Count: len(found)}
	var said, lines []string
	for _, c := range found[:min(maxPlaces, len(found))] {
		said = append(said, fmt.Sprintf("%q and %q (%d of %d told apart)", c.rare, c.common, c.successes, c.rows))
		lines = append(lines, fmt.Sprintf("%q becomes %q", c.rare, c.common))
		for _, p := range k.having([]string{c.rare}) {
			p.Proposal = c.common
			f.Rows = append(f.Rows, p)
		}
	}
	f.Message = fmt.Sprintf("%s: %s by chance: voters that have not seen the rows tell them apart no better than a coin: %s", k.Name, many(len(found), "pair of labels is confused", "pairs of labels are confused"), strings.Join(said, ", "))
	f.Advice = "if they mean the same, say so in the table of a labels block, in the columns label and becomes: " + strings.Join(lines, ", ")
	r.add(f)
}

// atMost returns the probability of at most k successes in n trials.
func atMost(k, n int, success float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-success)
}
