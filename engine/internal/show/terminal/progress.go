package terminal

import (
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// This file says how far a piece of work is, and how long the rest of it will
// take.
//
// What is left is estimated from what was done lately, not since the start: a resumed run
// begins with answers that it has, and services become slower. Where little is known, or
// more was done than was expected, there is no estimate rather than a wrong one.
//
// The package shows nothing, and does not know what is done.

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

// ProgressMeter measures how fast a piece of work is. Its zero value is ready for one that begins
// with the first call of Add.
type ProgressMeter struct {
	marks []mark
	step  ProgressStep
}

// mark is how far the work was at a time.
type mark struct {
	at   time.Time
	done int64
}

// Add takes a report. One of other work, or of less that is done, begins anew.
func (m *ProgressMeter) Add(now time.Time, s ProgressStep) {
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
func (m *ProgressMeter) Rate(now time.Time) (perSecond float64, ok bool) {
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
func (m *ProgressMeter) Left(now time.Time) (time.Duration, bool) {
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

// Between two lines: on a terminal, and elsewhere, as in the logs of CI, where every line
// stays.
const (
	redrawn = 100 * time.Millisecond
	logged  = 30 * time.Second
)

// Progress shows how far work is: in one line that is overwritten on a terminal, in a line
// every 30 seconds elsewhere.
type Progress struct {
	w     io.Writer
	width func() int // of the terminal, now; nil: w is none
	now   func() time.Time

	mu    sync.Mutex
	last  time.Time // when a line was shown, or the work began
	shown bool
}

// NewProgress shows progress on w. width is how many columns its terminal has, which is asked
// for each line; nil: w is no terminal, or one that cannot overwrite.
func NewProgress(w io.Writer, width func() int) *Progress {
	return &Progress{w: w, width: width, now: time.Now, last: time.Now()}
}

// Update shows a line where it is time for one. say is called for its parts, the most
// important ones first: what a terminal has no room for is left out.
func (p *Progress) Update(say func(now time.Time) []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, every := p.now(), logged
	if p.width != nil {
		every = redrawn
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	parts := say(now)
	if p.width == nil {
		_, _ = io.WriteString(p.w, Line(strings.Join(parts, ", "))+"\n") // nowhere is left to report an error
		return
	}
	p.clear()
	_, _ = io.WriteString(p.w, fitParts(parts, p.width()-1)) // in the last column some terminals break the line
	p.shown = true
}

// fitParts joins as many parts as n columns hold.
func fitParts(parts []string, n int) string {
	line := ""
	for i, part := range parts {
		longer := Line(part)
		if i > 0 {
			longer = line + ", " + longer
		}
		if i > 0 && Width(longer) > n {
			break
		}
		line = longer
	}
	return Fit(line, n)
}

// Clear removes the line from a terminal, before something else is written.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// ProgressStep is how far a piece of work is.
type ProgressStep struct {
	Doing string // "answering", "embedding", ...
	Name  string // of what it is done to, such as a knowledge; may be empty
	Unit  string // of Done and Total, such as "item"; Bytes for bytes
	Done  int64
	Total int64 // 0: not known
	About bool  // Total is estimated, from how much of a file has been read

	Passages int64         // of a knowledge that is built of documents, so far
	Flagged  int64         // of the items that are done
	Failed   int64         // of these
	Paid     float64       // what calls of services came to so far, in the currency of the prices
	Elapsed  time.Duration // of work that does not say how far it is
}

// BytesUnit is the unit of work that is measured in bytes.
const BytesUnit = "byte"

// ProgressFunc is called with steps, by several goroutines at once. nil: nobody wants to know.
type ProgressFunc func(ProgressStep)

// Report calls the function, if there is one.
func (f ProgressFunc) Report(s ProgressStep) {
	if f != nil {
		f(s)
	}
}
