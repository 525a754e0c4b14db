package bus

import "sync"

// waits tells when waiting begins and when it is over, once for all who wait at the same time.
type waits struct {
	tell func(why error)
	mu   sync.Mutex
	n    int
}

func (w *waits) enter(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n == 1 && w.tell != nil {
		w.tell(why)
	}
}

func (w *waits) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.tell != nil {
		w.tell(nil)
	}
}
