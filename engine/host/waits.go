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
	since time.Time // of the last answer, or of the first call that waits
	timer *time.Timer
}

func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == 1 {
		w.restart()
	}
}

// end notes that a call has ended, with an answer or without.
func (w *waits) end(answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls--; w.calls == 0 {
		w.timer.Stop()
	} else if answered {
		w.restart()
	}
}

func (w *waits) restart() {
	w.since = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.fire)
		return
	}
	w.timer.Reset(w.every)
}

func (w *waits) fire() {
	w.mu.Lock()
	waited := time.Since(w.since)
	if w.calls == 0 || waited < w.every { // it was just answered
		w.mu.Unlock()
		return
	}
	w.timer.Reset(w.every)
	w.mu.Unlock()
	w.report(waited)
}
