package promise

import (
	"cmp"
	"slices"
)

// Goal is what is to be promised. Both are above 0 and below 1.
type Goal struct {
	Accuracy   float64 // of the answers from the threshold on, at least
	Confidence float64 // that it is so
}

// Item is what became of a row with a label.
type Item struct {
	Text       string
	Confidence float64 // of its answer, from 0 to 1; higher for surer ones, nothing more is asked of it
	Answered   bool
	Right      bool // has the right answer
	Outside    bool // is out of scope: no answer would be right
}

// Promise says that of the answers from a threshold on at least Goal.Accuracy are right,
// and what was seen.
type Promise struct {
	Goal     Goal
	Rows     int // distinct texts
	Answered int // of Rows: from the threshold on
	Right    int // of Answered
	Outside  int // of Rows: out of scope
	Missed   int // of Outside: among Answered
	// Caught is the share of the rows out of scope that are flagged or left without an
	// answer, at least, with the goal's confidence; 0 where Outside is.
	Caught float64

	least, beyond float64 // confidences: the lowest of Answered, the highest below it; -1: none is below
}

// Find finds the lowest threshold that keeps a goal on items like these. An error says
// why there is none, and how many rows it takes where there are too few.
func Find(items []Item, g Goal) (Promise, error) {
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

// find finds the threshold on rows of which none depends on another. The first test is
// about start answers.
func (g Goal) find(rows []Item, start int) (Promise, error) {
	p := Promise{Goal: g, Rows: len(rows)}
	answers := slices.DeleteFunc(slices.Clone(rows), func(i Item) bool { return !i.Answered })
	slices.SortStableFunc(answers, func(a, b Item) int { return cmp.Compare(b.Confidence, a.Confidence) })
	wrong, proven := 0, -1 // proven: the errors with which the last test passed
	for n := 1; n <= len(answers); n++ {
		if !answers[n-1].Right {
			wrong++
		}
		if n < start || n < len(answers) && answers[n].Confidence == answers[n-1].Confidence {
			continue
		}
		// More answers with the same errors pass where fewer did.
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
func (p *Promise) countOutside(rows []Item) {
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

// distinct merges the items with the same text.
func distinct(items []Item) []Item {
	rows := make([]Item, 0, len(items))
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
