package worker

import (
	"context"
	"slices"
	"sync"
)

// line lets a few in at a time, and the others in the order in which they came.
type line struct {
	places int

	mu      sync.Mutex
	free    int
	waiting []chan struct{} // is closed when it may enter
}

func newLine(places int) *line { return &line{places: places, free: places} }

// stand takes a place in the line. The function waits for its turn, and returns the error of ctx
// where that ends before: then nothing is to be left.
func (l *line) stand() (enter func(ctx context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := make(chan struct{})
	if l.free > 0 {
		l.free--
		close(turn)
	} else {
		l.waiting = append(l.waiting, turn)
	}
	return func(ctx context.Context) error {
		select {
		case <-turn:
			return nil
		case <-ctx.Done():
			l.withdraw(turn)
			return ctx.Err()
		}
	}
}

// enter is stand, and waits. A nil line lets everybody in.
func (l *line) enter(ctx context.Context) error {
	if l == nil {
		return ctx.Err()
	}
	return l.stand()(ctx)
}

// pass waits until it could enter.
func (l *line) pass(ctx context.Context) error {
	err := l.enter(ctx)
	if err == nil {
		l.leave()
	}
	return err
}

func (l *line) withdraw(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, turn); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		return
	}
	l.next() // it was let in meanwhile
}

// leave makes room for the next one.
func (l *line) leave() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

// next lets one in. The caller holds mu.
func (l *line) next() {
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	close(l.waiting[0])
	l.waiting = l.waiting[1:]
}

// others reports whether somebody waits.
func (l *line) others() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}
