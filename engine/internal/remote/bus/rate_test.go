package bus

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Batches per second from the queue to the caller, of 120 bytes for each of 64 items, with one server and with three; RACFLOW_RATE says how many.
func TestRate(t *testing.T) {
	if os.Getenv("RACFLOW_RATE") == "" {
		t.Skip("measures; set RACFLOW_RATE")
	}
	batches, _ := strconv.Atoi(os.Getenv("RACFLOW_RATE"))
	for _, n := range []int{1, 3} {
		s := natstest.Start(t, n)
		ctx := bounded(t)
		caller := create(t, connect(t, s.URL(), "caller"), Config{ID: "a1"})
		begin := time.Now()
		var group sync.WaitGroup
		for p := range 16 {
			group.Go(func() {
				for seq := p + 1; seq <= batches; seq += 16 {
					if err := caller.Publish(ctx, Position{1, seq}, make([]byte, 64*120)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for w := range 4 {
			theirs := must.Get(connect(t, s.URL(), fmt.Sprint("w", w)).Open(ctx, "a1"))(t)
			for range 4 {
				go func() {
					for {
						b, err := theirs.Take(ctx)
						if err != nil {
							return
						}
						_, _ = theirs.Answer(ctx, b.Position, make([]byte, 64*120))
						_ = b.Done(ctx)
					}
				}()
			}
		}
		results(t, caller, 0, batches)
		t.Logf("%d servers: %.0f batches per second", n, float64(batches)/time.Since(begin).Seconds())
		group.Wait()
		for i := range n {
			s.Stop(i)
		}
	}
}
