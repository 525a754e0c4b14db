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
			go func() {
				if l.enter(ctx) == nil {
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
		if l.others() {
			t.Error("others wait")
		}
	})
}
