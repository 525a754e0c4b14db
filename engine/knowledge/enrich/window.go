package enrich

import (
	"context"
	"sync"
)

// ahead is how many times as many groups are held as are worked on: one that takes
// long does not hold up those behind it until so many of them wait for it.
const ahead = 4

// window is the room for groups: as many as are worked on at a time, and beyond
// that up to ahead times as many while their texts together are small.
type window struct {
	least, bytes int // groups that have room however large they are, and the bytes that others may have

	mu    sync.Mutex
	held  int // groups
	size  int // bytes of their texts
	freed chan struct{}
}

func newWindow(groups, bytes int) *window {
	return &window{least: groups, bytes: bytes, freed: make(chan struct{}, 1)}
}

// most is how many groups are held at most.
func (w *window) most() int { return ahead * w.least }

// enter waits until there is room for a group of so many bytes. One goroutine at a
// time may call it.
func (w *window) enter(ctx context.Context, size int) error {
	for !w.admit(size) {
		select {
		case <-w.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *window) admit(size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held >= w.most() || w.held >= w.least && w.size+size > w.bytes {
		return false
	}
	w.held, w.size = w.held+1, w.size+size
	return true
}

// leave gives the room of a group back.
func (w *window) leave(size int) {
	w.mu.Lock()
	w.held, w.size = w.held-1, w.size-size
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}
