package progress

import (
	"math"
	"slices"
	"time"
)

// This file measures how far a piece of work is, and how long the rest of it will
// take.
//
// It estimates the rest from the recent rate, not from the rate since the start: a resumed run
// begins with earlier answers, and services become slower. If little is known, or
// more is done than expected, it gives no estimate rather than a wrong one.
//
// It does not know what kind of work is done.

// An estimate needs this much time since the start, and this many recent reports of progress. One
// report is enough if steps are slow: a model that takes ten seconds for an item has then done a
// batch of items. Recent means at least the last half of the time since the start, and at least the
// time `recent`, so that a few slow steps do not outweigh everything else.
const (
	evidence    = 5 * time.Second
	steps       = 4
	recent      = 30 * time.Second
	longestLeft = 1000 * time.Hour
)

// Meter measures how fast a piece of work is. The zero value is ready; the work begins with
// the first call of Add.
type Meter struct {
	// marks are the start and the last two later marks. Each mark comes when twice as much time has
	// passed as at the mark before.
	marks []mark
	moves int // reports of progress
	step  Step
}

// mark says how much was done and paid at a time.
type mark struct {
	at    time.Time
	done  int64
	paid  float64
	moves int
}

// Add takes a report. It starts anew if the report concerns other work, or if less is done than
// before.
func (m *Meter) Add(now time.Time, s Step) {
	if s.Doing != m.step.Doing || s.Name != m.step.Name || s.Unit != m.step.Unit || s.Done < m.step.Done || len(m.marks) == 0 {
		m.marks, m.moves = []mark{{at: now, done: s.Done, paid: s.Paid}}, 0
	} else if s.Done > m.step.Done {
		m.moves++
	}
	m.step = s
	start, last := m.marks[0].at, m.marks[len(m.marks)-1].at
	if now.Sub(start) < max(recent, 2*last.Sub(start)) {
		return
	}
	if len(m.marks) == 3 {
		m.marks = slices.Delete(m.marks, 1, 2)
	}
	m.marks = append(m.marks, mark{now, s.Done, s.Paid, m.moves})
}

// since returns the mark where recent work begins; false: too little is known.
func (m *Meter) since(now time.Time) (since mark, ok bool) {
	if len(m.marks) == 0 {
		return since, false
	}
	elapsed := now.Sub(m.marks[0].at)
	for _, one := range m.marks {
		if since.at.IsZero() || now.Sub(one.at) >= max(recent, elapsed/2) {
			since = one
		}
	}
	slow := now.Sub(since.at) >= recent
	return since, elapsed >= evidence && (slow || m.moves-since.moves >= steps) && m.step.Done > since.done
}

// Rate returns how much is done per second, recently; false: too little is known.
func (m *Meter) Rate(now time.Time) (perSecond float64, ok bool) {
	since, ok := m.since(now)
	if !ok {
		return 0, false
	}
	return float64(m.step.Done-since.done) / now.Sub(since.at).Seconds(), true
}

// Cost returns the total cost of the work, estimated from its recent cost; false: unknown.
func (m *Meter) Cost(now time.Time) (float64, bool) {
	since, ok := m.since(now)
	if rest := m.step.Total - m.step.Done; ok && rest > 0 && m.step.Paid > since.paid {
		return m.step.Paid + float64(rest)*(m.step.Paid-since.paid)/float64(m.step.Done-since.done), true
	}
	return 0, false
}

// Left returns roughly how long the rest will take; false: unknown.
func (m *Meter) Left(now time.Time) (time.Duration, bool) {
	rate, ok := m.Rate(now)
	rest := m.step.Total - m.step.Done
	if !ok || rest <= 0 {
		return 0, false
	}
	seconds := float64(rest) / rate
	if seconds > longestLeft.Seconds() {
		return 0, false
	}
	return roughly(seconds), true
}

// roughly rounds seconds up as coarsely as an estimate deserves.
func roughly(seconds float64) time.Duration {
	to := time.Second
	switch {
	case seconds > 3600:
		to = 10 * time.Minute
	case seconds > 600:
		to = time.Minute
	case seconds > 60:
		to = 10 * time.Second
	case seconds > 10:
		to = 5 * time.Second
	}
	return time.Duration(math.Ceil(seconds/to.Seconds())) * to
}
