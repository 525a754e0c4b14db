package host

import (
	"sync"
	"time"
)

// waits reports that a stage has calls under way and has answered none for a
// while, again and again.
type waits struct {
	every  time.Duration
	report func(time.Duration)

	mu    sync.Mutex
	calls int
	since time.Time   // of the last answer, or of the first call that waits
	timer *time.Timer // nil: it does not run. Answers leave it alone: to set it anew costs more than to look at a clock
}

func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == 1 {
		w.since = time.Now()
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.fire)
	}
}

// end notes that a call has ended, with an answer or without.
func (w *waits) end(answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	if answered {
		w.since = time.Now()
	}
}

func (w *waits) fire() {
	w.mu.Lock()
	if w.calls == 0 {
		w.timer = nil
		w.mu.Unlock()
		return
	}
	waited := time.Since(w.since)
	next := w.every
	if waited < w.every {
		next -= waited
	}
	w.timer.Reset(next)
	w.mu.Unlock()
	if waited >= w.every {
		w.report(waited)
	}
}
