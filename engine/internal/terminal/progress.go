package terminal

import (
	"io"
	"strings"
	"sync"
	"time"
)

// The time between two lines, on a terminal and elsewhere, as in the logs of CI, where every line
// stays.
const (
	redrawn = 100 * time.Millisecond
	logged  = 30 * time.Second
)

// Progress shows how far work is. On a terminal it overwrites one line; elsewhere it writes a new
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
