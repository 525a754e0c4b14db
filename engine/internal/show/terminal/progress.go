package terminal

import (
	"io"
	"math"
	"slices"
	"strings"
	"sync"
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

// An estimate needs this much time since the start, and this many recent reports of progress.
// Recent means at least the last half of the time since the start, and at least the time `recent`, so that a
// few slow steps do not outweigh everything else.
const (
	evidence    = 5 * time.Second
	steps       = 4
	recent      = 30 * time.Second
	longestLeft = 1000 * time.Hour
)

// ProgressMeter measures how fast a piece of work is. The zero value is ready; the work begins with
// the first call of Add.
type ProgressMeter struct {
	// marks are the start and, of the later marks, the last two. Each comes when twice as much time has passed as at
	// the mark before.
	marks []mark
	moves int // reports of progress
	step  ProgressStep
}

// mark says how much was done and paid at a time.
type mark struct {
	at    time.Time
	done  int64
	paid  float64
	moves int
}

// Add takes a report. It starts anew if the report is about other work, or less is done than before.
func (m *ProgressMeter) Add(now time.Time, s ProgressStep) {
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
func (m *ProgressMeter) since(now time.Time) (since mark, ok bool) {
	if len(m.marks) == 0 {
		return since, false
	}
	elapsed := now.Sub(m.marks[0].at)
	for _, one := range m.marks {
		if since.at.IsZero() || now.Sub(one.at) >= max(recent, elapsed/2) {
			since = one
		}
	}
	return since, elapsed >= evidence && m.moves-since.moves >= steps && m.step.Done > since.done
}

// Rate returns how much is done per second, recently; false: too little is known.
func (m *ProgressMeter) Rate(now time.Time) (perSecond float64, ok bool) {
	since, ok := m.since(now)
	if !ok {
		return 0, false
	}
	return float64(m.step.Done-since.done) / now.Sub(since.at).Seconds(), true
}

// Cost returns what all of the work will have cost, by what it cost recently; false: unknown.
func (m *ProgressMeter) Cost(now time.Time) (float64, bool) {
	since, ok := m.since(now)
	if rest := m.step.Total - m.step.Done; ok && rest > 0 && m.step.Paid > since.paid {
		return m.step.Paid + float64(rest)*(m.step.Paid-since.paid)/float64(m.step.Done-since.done), true
	}
	return 0, false
}

// Left returns roughly how long the rest will take; false: unknown.
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
	return Roughly(seconds), true
}

// Roughly rounds seconds up as coarsely as an estimate deserves.
func Roughly(seconds float64) time.Duration {
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

// The time between two lines, on a terminal and elsewhere, as in the logs of CI, where every line
// stays.
const (
	redrawn = 100 * time.Millisecond
	logged  = 30 * time.Second
)

// Progress shows how far work is: on a terminal in one line that it overwrites, elsewhere in a new
// line every 30 seconds.
type Progress struct {
	w     io.Writer
	width func() int // returns the columns of the terminal; nil: w is not a terminal
	now   func() time.Time

	mu    sync.Mutex
	last  time.Time // when the last line was shown, or the work began
	shown bool
}

// NewProgress returns a Progress that writes to w. It calls width before each line for the columns
// of the terminal; nil: w is not a terminal, or cannot overwrite a line.
func NewProgress(w io.Writer, width func() int) *Progress {
	return &Progress{w: w, width: width, now: time.Now, last: time.Now()}
}

// Update shows a line if it is time for one. say returns the parts of the line, the most important
// first: a terminal shows as many as fit.
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
		_, _ = io.WriteString(p.w, Line(strings.Join(parts, ", "))+"\n") // there is nowhere to report an error
		return
	}
	p.clear()
	_, _ = io.WriteString(p.w, fitParts(parts, p.width()-1)) // some terminals break the line after the last column
	p.shown = true
}

// fitParts joins as many parts as fit into n columns.
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

// ProgressStep is a report of how far a piece of work is.
type ProgressStep struct {
	Doing string // "answering", "embedding", ...
	Name  string // the object of the work, such as a knowledge; may be empty
	Unit  string // of Done and Total, such as "item"; BytesUnit for bytes
	Done  int64
	Total int64 // 0: unknown
	About bool  // Total is an estimate from how much of a file has been read

	Passages int64   // so far, if a knowledge is built from documents
	Flagged  int64   // among the items done
	Failed   int64   // among the items done
	Paid     float64 // cost of calls of services so far, in the currency of the prices
}

// BytesUnit is the unit of work that is measured in bytes.
const BytesUnit = "byte"

// ProgressFunc takes steps, from several goroutines at once. nil: nobody wants them.
type ProgressFunc func(ProgressStep)

// Report calls the function, if there is one.
func (f ProgressFunc) Report(s ProgressStep) {
	if f != nil {
		f(s)
	}
}
