package terminal

import (
	"io"
	"strings"
	"sync"
	"time"
)

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

	mu    sync.Mutex
	last  time.Time // when a line was shown, or the work began
	shown bool
}

// NewProgress shows progress on w. width is how many columns its terminal has, which is asked
// for each line; nil: w is no terminal, or one that cannot overwrite.
func NewProgress(w io.Writer, width func() int) *Progress {
	return &Progress{w: w, width: width, last: time.Now()}
}

// Update shows a line where it is time for one. say is called for its parts, the most
// important ones first: what a terminal has no room for is left out.
func (p *Progress) Update(say func(now time.Time) []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, every := time.Now(), logged
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
