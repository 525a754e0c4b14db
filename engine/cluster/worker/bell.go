package worker

import "sync"

// bell wakes all who wait for it.
type bell struct {
	mu    sync.Mutex
	rings chan struct{}
}

// next is closed when it rings next.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings == nil {
		b.rings = make(chan struct{})
	}
	return b.rings
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings != nil {
		close(b.rings)
		b.rings = nil
	}
}
