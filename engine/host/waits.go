package host

import (
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/waiting"
)

// waits counts the calls of a stage that are under way.
type waits struct {
	mu      sync.Mutex
	opening time.Time // since when; zero: the stage is open
	calls   int
	since   time.Time // of the last answer, or of the first call that waits
}

// open notes that the stage is being opened, until opened is called.
func (w *waits) open() (opened func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opening = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.opening = time.Time{}
	}
}

func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == 1 {
		w.since = time.Now()
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

func (w *waits) say(stage string, now time.Time, say func(waiting.Wait)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.opening.IsZero():
		why := fmt.Sprintf("it has been starting for %s", now.Sub(w.opening).Round(time.Second))
		say(waiting.Wait{Stage: stage, Why: why, Since: w.opening, After: waiting.Soon})
	case w.calls > 0:
		why := fmt.Sprintf("no answer for %s", now.Sub(w.since).Round(time.Second))
		say(waiting.Wait{Stage: stage, Calls: w.calls, Why: why, Since: w.since, After: waiting.Late})
	}
}

// Waits says which stages are starting, and which have calls under way and since when they
// have answered none. It is a waiting.Source.
func (h *Host) Waits(now time.Time, say func(waiting.Wait)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.processes {
		p.waits.say(p.name(), now, say)
	}
}
