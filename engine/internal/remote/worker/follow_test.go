package worker

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2)
		var entered []string
		stand := func(ctx context.Context, name string) {
			enter := l.stand()
			go func() {
				if enter(ctx) == nil {
					entered = append(entered, name)
				}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		for _, name := range []string{"a", "b"} {
			stand(t.Context(), name)
		}
		if len(entered) != 2 || l.others() {
			t.Fatalf("%v are in, others wait: %t", entered, l.others())
		}
		stand(t.Context(), "c")
		stand(gone, "gives up")
		stand(t.Context(), "d")
		leave()
		synctest.Wait()
		if len(entered) != 2 || !l.others() {
			t.Fatalf("%v are in, others wait: %t", entered, l.others())
		}
		for _, want := range []string{"c", "d"} {
			l.leave()
			synctest.Wait()
			if got := entered[len(entered)-1]; got != want {
				t.Errorf("%s comes in, want %s", got, want)
			}
		}
		l.leave()
		l.leave()
		if len(entered) != 4 || l.others() || l.free != 2 {
			t.Errorf("%v were in, %d places are free", entered, l.free)
		}
	})
}

// One that gives up when its turn has come already leaves its place to the next.
func TestLineTurnInVain(t *testing.T) {
	l := newLine(1)
	l.stand()
	first, second := l.stand(), l.stand()
	l.leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if first(ctx) == nil { // both are so: which one select takes is a matter of chance
		l.leave()
	}
	if err := second(t.Context()); err != nil {
		t.Error(err)
	}
}
