package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress shows how far work is: in one line that is overwritten on a terminal, in a
// line every ten seconds elsewhere.
type Progress struct {
	w        io.Writer
	terminal bool
	every    time.Duration

	mu          sync.Mutex
	start, last time.Time
	shown       bool
}

// NewProgress reports to w.
func NewProgress(w io.Writer, terminal bool) *Progress {
	p := &Progress{w: w, terminal: terminal, every: 10 * time.Second}
	if terminal {
		p.every = 100 * time.Millisecond
	}
	p.Restart()
	return p
}

// Restart begins another piece of work.
func (p *Progress) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.start = time.Now()
	p.last = p.start
}

// Update says that done of total units are done; a total of 0 is not known.
func (p *Progress) Update(what string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	rate := float64(done) / now.Sub(p.start).Seconds()
	line := fmt.Sprintf("%s: %d, %.0f/s", what, done, rate)
	if total > 0 && rate > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second)).Round(time.Second)
		line = fmt.Sprintf("%s: %d of %d, %.0f/s, %s left", what, done, total, rate, left)
	}
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	p.clear()
	fmt.Fprint(p.w, line)
	p.shown = true
}

// Clear removes the line from a terminal, before something else is written.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
