package enrich

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	w := newWindow(2, 100)
	sizes := func(want bool, sizes ...int) {
		t.Helper()
		for _, size := range sizes {
			if got := w.admit(size); got != want {
				t.Fatalf("a group of %d bytes has room beside %d of %d: %v", size, w.held, w.size, got)
			}
		}
	}
	sizes(true, 90, 90) // as many as are worked on, whatever they hold
	sizes(false, 1)
	w.leave(90)
	sizes(true, 5)
	sizes(false, 6)
	sizes(true, 5)
	w.leave(90)
	sizes(true, 1, 1, 1, 1, 1, 1)
	sizes(false, 1) // eight are held

	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan error)
	go func() { entered <- w.enter(ctx, 50) }()
	w.leave(1)
	select {
	case err := <-entered:
		if err != nil || w.held != 8 || w.size != 65 {
			t.Errorf("%v, %d groups of %d bytes", err, w.held, w.size)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told of the room")
	}
	go func() { entered <- w.enter(ctx, 1) }()
	cancel()
	if err := <-entered; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
