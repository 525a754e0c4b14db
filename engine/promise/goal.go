package promise

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/racflow/racflow/engine/interval"
)

// Where the sequence of tests starts: see the package's documentation.
const (
	startErrors = 5
	startMost   = 2. / 5 // of the answers
	startLeast  = 1. / 5
)

func (g Goal) String() string {
	return fmt.Sprintf("%v with %v %% confidence", g.Accuracy, math.Round(1e4*g.Confidence)/100)
}

// holds tests whether this many answers, so many of them wrong, show the goal.
func (g Goal) holds(answers, wrong int) bool {
	return interval.AtLeast(answers-wrong, answers, g.Confidence) >= g.Accuracy
}

// Needs is the least number of answers that show a goal with so many errors among them.
func (g Goal) Needs(wrong int) int {
	high := wrong + 1
	for !g.holds(high, wrong) {
		high *= 2
	}
	return high/2 + sort.Search(high-high/2, func(n int) bool { return g.holds(high/2+n, wrong) })
}

// start is how many of so many answers the first test is about: some number of errors
// just passes with it.
func (g Goal) start(answers int) int {
	start := g.Needs(0)
	for wrong := 1; ; wrong++ {
		n := float64(g.Needs(wrong))
		if n > startLeast*float64(answers) && (wrong > startErrors || n > startMost*float64(answers)) {
			return start
		}
		start = int(n)
	}
}

// Check returns an error where a goal is none, and where so many rows cannot show it
// whatever their answers are, so that nobody pays for these.
func (g Goal) Check(rows int) error {
	switch {
	case g.Accuracy == 1:
		return errors.New("no number of rows can show that all answers are right: promise less than 1, such as 0.99")
	case !(g.Accuracy > 0 && g.Accuracy < 1):
		return fmt.Errorf("an accuracy of %v cannot be promised: give one between 0 and 1", g.Accuracy)
	case !(g.Confidence > 0 && g.Confidence < 1):
		return fmt.Errorf("a confidence of %v cannot be had: give one between 0 and 1, such as 0.95", g.Confidence)
	}
	if needs := g.Needs(0); rows < needs {
		return fmt.Errorf("%s needs at least %d rows without an error above the threshold; there are %d (the same text counts once)", g, needs, rows)
	}
	return nil
}

// refusal says why the first test failed and what would help.
func (g Goal) refusal(n, wrong, answers int) error {
	allowed := 0
	for g.holds(n, allowed+1) {
		allowed++
	}
	advice := fmt.Sprintf("They show no more than %.3f", math.Floor(1e3*interval.AtLeast(n-wrong, n, g.Confidence))/1e3)
	if rows := g.enough(float64(wrong) / float64(n)); rows > 0 {
		advice += fmt.Sprintf("; if the surest err as rarely among more rows, about %d are enough", rows)
	}
	return fmt.Errorf("no threshold shows %s: of the %d surest of %d answers %d are wrong, and at most %d may be. %s", g, n, answers, wrong, allowed, advice)
}

// enough is about how many answers it takes if this share of the surest is wrong; 0: no
// number is enough.
func (g Goal) enough(rate float64) int {
	if rate >= 1-g.Accuracy {
		return 0
	}
	for wrong := 1; ; wrong += wrong/10 + 1 {
		n := g.Needs(wrong)
		if rate*float64(n) > float64(wrong) {
			continue
		}
		rows := float64(n) / startLeast
		if wrong <= startErrors {
			rows = float64(n) / startMost
		}
		unit := math.Pow(10, math.Floor(math.Log10(rows))-1) // two digits
		return int(math.Ceil(rows/unit) * unit)
	}
}

// missedAtMost bounds the share of the rows out of scope that get an answer from the
// threshold on, where the threshold was chosen on the same rows. For a threshold that
// is fixed, the exact bound of the number missed would do. Here it is the bound of the
// next number of a list, with the confidence divided among the list: whatever the
// threshold, the bound then holds (Bonferroni).
func missedAtMost(missed, outside int, confidence float64) float64 {
	list, at := 0, outside
	for n := 0; n < outside; n += n/10 + 1 { // 0, 1, ... 10, 12, ...
		if list++; n >= missed {
			at = min(at, n)
		}
	}
	return interval.AtMost(at, outside, 1-(1-confidence)/float64(list))
}
