package serve

import (
	"runtime"
	"testing"
	"time"
)

func TestGarbagePercent(t *testing.T) {
	for held, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 4 << 30: 50} {
		if got := garbagePercent(held); got != want {
			t.Errorf("%d bytes held: %d %%, want %d", held, got, want)
		}
	}
}

func TestAfterCollections(t *testing.T) {
	called := make(chan struct{}, 100)
	afterCollections(func() { called <- struct{}{} })
	for range 3 {
		runtime.GC()
		select {
		case <-called:
		case <-time.After(time.Minute):
			t.Fatal("a collection was not noticed")
		}
	}
}
