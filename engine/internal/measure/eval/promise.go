package eval

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
)

// This file finds a threshold of confidence above which answers are right often enough, and
// guarantees it (a promise): at least a share A of the answers at or above the threshold is right.
// The guarantee has a chosen confidence: of many such promises, each on rows of its own, at most a
// share of 1 - confidence is broken.
//
// # The method
//
// The search tries thresholds downwards from the surest answers, one distinct confidence after the
// other. It tests each threshold exactly, by the binomial tail of the errors (Clopper and Pearson,
// 1934: interval.go). The first failed test ends the search; the last threshold that passed is the
// result. This is fixed-sequence testing as in Angelopoulos, Bates, Candès, Jordan and Lei, "Learn
// then Test: Calibrating Predictive Algorithms to Achieve Risk Control" (arXiv:2110.01052, 2021;
// Annals of Applied Statistics, 2025), for the risk of a classifier that may abstain (Geifman and
// El-Yaniv, "Selective Classification for Deep Neural Networks", NeurIPS 2017). It needs no
// correction for the number of tests: a promise is broken only if the very first threshold that is
// too low passes its test, which happens with a probability of at most 1 - confidence. A correction
// for only twenty thresholds would leave a tenth to a half fewer answers unflagged.
//
// A few answers prove nothing. So the first test takes the least number of answers that pass with
// five errors. If that number exceeds two fifths of all answers, the test allows fewer errors, down
// to none; if it is below a fifth, the test allows more. Its size depends on the number of answers,
// on A and on the confidence, never on which answers are right.
//
// On 2,000 rows drawn from populations of nine shapes, the threshold leaves unflagged 84 % of the
// answers that would be possible if the truth were known (TestDraws), more for 0.95 than for 0.98.
// It leaves least unflagged where even the surest answers are wrong nearly as often as the promise
// allows.
//
// # Assumptions
//
// Rows are independent draws of the texts that the pipeline will see. Any share of the rows may be
// out of scope (Promise.Unknown): the promise holds while at most this share of later texts is out
// of scope. Every answer to an out-of-scope text is wrong, so a smaller share only makes more
// answers right. Nothing else was chosen on the rows. The guarantee is exact if the share of errors
// does not fall as the threshold does; calibration is not needed. If the surest answers are wrong
// more often than the next ones, a threshold that is too low can pass a little more often; the
// tests include such draws.
//
// Rows with the same text count as one row, because a copy shows nothing new. This row is right if
// all copies are right, and has the highest confidence of the copies.
//
// An answer to an out-of-scope row is wrong; flagging the row, or leaving it without an answer,
// catches it. For the chosen threshold, the promise also says how many out-of-scope rows are
// caught, with the same confidence. The bound is exact for each of a list of numbers of missed
// rows, and corrected for the length of the list.
//
// This file only calculates; package tune runs the pipeline and finds the rule that reads the
// threshold.

// Promise is a guarantee that at least Goal.Accuracy of the answers at or above a threshold are
// right, with the counts that prove it.
type Promise struct {
	Goal     PromiseGoal
	Rows     int // distinct texts
	Answered int // of Rows: from the threshold on
	Right    int // of Answered
	Outside  int // of Rows: out of scope
	Missed   int // of Outside: among Answered
	// Caught is a lower bound, with the goal's confidence, of the share of out-of-scope rows that
	// are flagged or left without an answer; 0 if Outside is 0.
	Caught float64

	least, beyond float64 // confidences: the lowest of Answered, the highest below it; -1: there is none
}

// Bounds of the first test: see the comment above.
const (
	startErrors = 5
	startMost   = 2. / 5 // of the answers
	startLeast  = 1. / 5
)

func (g PromiseGoal) String() string {
	return fmt.Sprintf("%v with %v %% confidence", g.Accuracy, math.Round(1e4*g.Confidence)/100)
}

// holds tests whether this number of answers, with this number of errors among them, proves the
// goal.
func (g PromiseGoal) holds(answers, wrong int) bool {
	return AtLeast(answers-wrong, answers, g.Confidence) >= g.Accuracy
}

// Needs returns how many answers are needed to prove the goal if this number of them is wrong.
func (g PromiseGoal) Needs(wrong int) int {
	high := wrong + 1
	for !g.holds(high, wrong) {
		high *= 2
	}
	return high/2 + sort.Search(high-high/2, func(n int) bool { return g.holds(high/2+n, wrong) })
}

// start returns the size of the first test, in answers: the least number that passes with some
// number of errors.
func (g PromiseGoal) start(answers int) int {
	start := g.Needs(0)
	for wrong := 1; ; wrong++ {
		n := float64(g.Needs(wrong))
		if n > startLeast*float64(answers) && (wrong > startErrors || n > startMost*float64(answers)) {
			return start
		}
		start = int(n)
	}
}

// Check returns an error if a goal is invalid, or if the rows are too few to prove it even with
// right answers. So callers need not pay for useless answers.
func (g PromiseGoal) Check(rows int) error {
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

// refusal says why the first test failed.
func (g PromiseGoal) refusal(n, wrong, answers int) error {
	allowed := 0
	for g.holds(n, allowed+1) {
		allowed++
	}
	return fmt.Errorf("no threshold shows %s: of the %d surest of %d answers %d are wrong, and at most %d may be. They show no more than %.3f: ask for less, or give more rows",
		g, n, answers, wrong, allowed, math.Floor(1e3*AtLeast(n-wrong, n, g.Confidence))/1e3)
}

// missedAtMost is an upper bound of the share of out-of-scope rows with an answer at or above the
// threshold. For a fixed threshold, the exact bound for the number missed would suffice, but the
// threshold was chosen on the same rows. So the bound is computed for the next number of a list,
// with the error probability divided among the list: it holds for any threshold (Bonferroni).
func missedAtMost(missed, outside int, confidence float64) float64 {
	list, at := 0, outside
	for n := 0; n < outside; n += n/10 + 1 { // 0, 1, ... 10, 12, ...
		if list++; n >= missed {
			at = min(at, n)
		}
	}
	return AtMost(at, outside, 1-(1-confidence)/float64(list))
}

// PromiseGoal is the goal of a promise. Both fields are above 0 and below 1.
type PromiseGoal struct {
	Accuracy   float64 // least share of right answers at or above the threshold
	Confidence float64 // probability that the promise holds
}

// PromiseItem is the outcome of a row with a label.
type PromiseItem struct {
	Text       string
	Confidence float64 // of the answer, from 0 to 1; only the order matters
	Answered   bool
	Right      bool // has the right answer
	Outside    bool // is out of scope: no answer would be right
}

// FindPromise returns the lowest threshold that the items prove to meet a goal. An error says why
// there is none and, if there are too few rows, how many are needed.
func FindPromise(items []PromiseItem, g PromiseGoal) (Promise, error) {
	rows := distinct(items)
	answers := 0
	for _, r := range rows {
		if r.Answered {
			answers++
		}
	}
	if err := g.Check(answers); err != nil {
		return Promise{Goal: g, Rows: len(rows)}, err
	}
	return g.find(rows, g.start(answers))
}

// find returns the threshold on independent rows. The first test has start answers.
func (g PromiseGoal) find(rows []PromiseItem, start int) (Promise, error) {
	p := Promise{Goal: g, Rows: len(rows)}
	answers := slices.DeleteFunc(slices.Clone(rows), func(i PromiseItem) bool { return !i.Answered })
	slices.SortStableFunc(answers, func(a, b PromiseItem) int { return cmp.Compare(b.Confidence, a.Confidence) })
	wrong, proven := 0, -1 // proven: number of errors in the last test that passed
	for n := 1; n <= len(answers); n++ {
		if !answers[n-1].Right {
			wrong++
		}
		if n < start || n < len(answers) && answers[n].Confidence == answers[n-1].Confidence {
			continue
		}
		// With the same number of errors, more answers pass if fewer answers passed.
		if wrong != proven && !g.holds(n, wrong) {
			if p.Answered == 0 {
				return p, g.refusal(n, wrong, len(answers))
			}
			break
		}
		proven = wrong
		p.Answered, p.Right, p.least, p.beyond = n, n-wrong, answers[n-1].Confidence, -1
		if n < len(answers) {
			p.beyond = answers[n].Confidence
		}
	}
	p.countOutside(rows)
	return p, nil
}

// countOutside counts the rows out of scope and bounds how many are caught.
func (p *Promise) countOutside(rows []PromiseItem) {
	for _, r := range rows {
		if r.Outside {
			p.Outside++
			if r.Answered && r.Confidence >= p.least {
				p.Missed++
			}
		}
	}
	if p.Outside > 0 {
		p.Caught = 1 - missedAtMost(p.Missed, p.Outside, p.Goal.Confidence)
	}
}

// Unknown returns the share of out-of-scope texts up to which the promise holds.
func (p Promise) Unknown() float64 {
	return math.Floor(1e3*float64(p.Outside)/float64(max(p.Rows, 1))) / 1e3
}

// distinct merges the items with the same text.
func distinct(items []PromiseItem) []PromiseItem {
	rows := make([]PromiseItem, 0, len(items))
	at := make(map[string]int, len(items))
	for _, i := range items {
		n, ok := at[i.Text]
		if !ok {
			at[i.Text] = len(rows)
			rows = append(rows, i)
			continue
		}
		r := &rows[n]
		r.Outside = r.Outside || i.Outside
		switch {
		case !i.Answered:
		case !r.Answered:
			r.Answered, r.Right, r.Confidence = true, i.Right, i.Confidence
		default:
			r.Right, r.Confidence = r.Right && i.Right, max(r.Confidence, i.Confidence)
		}
	}
	return rows
}

// Threshold returns the promised threshold for a rule that flags lower confidences or, if
// inclusive, equal ones too. It is a number with few decimals, about half-way between two
// confidences, so that their last digits do not matter.
func (p Promise) Threshold(inclusive bool) float64 {
	switch {
	case p.beyond < 0 && !inclusive:
		return 0 // nothing is flagged
	case p.beyond < 0:
		return -.01
	}
	middle, room := (p.beyond+p.least)/2, (p.least-p.beyond)/4
	for scale := 10.; scale <= 1e15; scale *= 10 {
		x, err := strconv.ParseFloat(strconv.FormatFloat(math.Round(middle*scale)/scale, 'g', 15, 64), 64)
		if err == nil && p.beyond+room < x && x < p.least-room {
			return x
		}
	}
	if inclusive {
		return p.beyond
	}
	return p.least
}
