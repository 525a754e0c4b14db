package progress

import (
	"math"
	"time"
)

// What an estimate needs: so much time since the start, and so many reports of something
// done lately. Lately is half of the time since the start, and at least recent, so that a
// few slow steps do not outweigh all that is known.
const (
	evidence    = 5 * time.Second
	steps       = 4
	recent      = 30 * time.Second
	resolution  = 200 * time.Millisecond // between two marks
	mostMarks   = 512                    // half of them are forgotten then, every other one
	longestLeft = 1000 * time.Hour
)

// Meter measures how fast a piece of work is. Its zero value is ready for one that begins
// with the first call of Add.
type Meter struct {
	marks []mark
	step  Step
}

// mark is how far the work was at a time.
type mark struct {
	at   time.Time
	done int64
}

// Add takes a report. One of other work, or of less that is done, begins anew.
func (m *Meter) Add(now time.Time, s Step) {
	if s.Doing != m.step.Doing || s.Name != m.step.Name || s.Unit != m.step.Unit || s.Done < m.step.Done || len(m.marks) == 0 {
		m.marks = []mark{{now, s.Done}}
	}
	m.step = s
	if last := &m.marks[len(m.marks)-1]; now.Sub(last.at) < resolution {
		if len(m.marks) > 1 { // the start stays where it is
			last.done = s.Done
		}
		return
	}
	if len(m.marks) == mostMarks {
		kept := m.marks[:1]
		for i := 2; i < mostMarks; i += 2 {
			kept = append(kept, m.marks[i])
		}
		m.marks = kept
	}
	m.marks = append(m.marks, mark{now, s.Done})
}

// Rate is how much is done in a second, lately; false: too little is known.
func (m *Meter) Rate(now time.Time) (perSecond float64, ok bool) {
	if len(m.marks) == 0 {
		return 0, false
	}
	elapsed := now.Sub(m.marks[0].at)
	since := m.marks[0]
	for _, one := range m.marks {
		if now.Sub(one.at) < max(recent, elapsed/2) {
			break
		}
		since = one
	}
	moved, before := 0, since.done
	for _, one := range m.marks {
		if one.at.After(since.at) && one.done > before {
			moved, before = moved+1, one.done
		}
	}
	done := m.step.Done - since.done
	if elapsed < evidence || moved < steps || done <= 0 {
		return 0, false
	}
	return float64(done) / now.Sub(since.at).Seconds(), true
}

// Left is how long the rest will take: whole seconds, rounded up as coarsely as such a guess
// deserves; false: that is not known.
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
	return time.Duration(math.Ceil(seconds/to.Seconds())) * to, true
}
