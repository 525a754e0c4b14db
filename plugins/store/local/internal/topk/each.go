package topk

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do for the numbers below n, on every core.
func Each(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var running sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		running.Go(work)
	}
	work()
	running.Wait()
	return ctx.Err()
}
