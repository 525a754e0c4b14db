package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// Why a process does not keep the book any more.
var (
	errLost  = errors.New("the claim to hand them out is over, and another process may have it")
	errYield = errors.New("the caller hands them out")
)

// reign keeps the book as long as the claim lasts. The error says why it is over.
func (k *Keeper) reign(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := k.open(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		if err := w.run(ctx); err != nil {
			cancel(err)
		}
	})
	stop, err := k.run.Serve(reports+k.claim.id, func(data []byte) []byte { return k.answer(ctx, data) })
	if err != nil {
		return err
	}
	defer stop()
	err = k.renew(ctx)
	k.mu.Lock()
	k.book = nil
	k.mu.Unlock()
	cancel(err)
	if !errors.Is(err, errLost) {
		bounded, done := context.WithTimeout(context.WithoutCancel(ctx), k.terms.claim/3)
		defer done()
		if err := k.claim.give(bounded); err != nil {
			k.log.Debug("the claim to the limits of the run stands until it is over", "error", err)
		}
	}
	return err
}

// renew keeps the claim until ctx ends or it is lost.
func (k *Keeper) renew(ctx context.Context) error {
	for {
		if support.SleepFor(ctx, k.terms.claim/3) != nil {
			return context.Cause(ctx)
		}
		bounded, done := context.WithDeadline(ctx, k.claim.until)
		mine, err := k.claim.renew(bounded)
		done()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && time.Now().Before(k.claim.until):
			k.log.Debug("the claim to the limits of the run is not renewed yet", "error", err)
		case err != nil || !mine:
			return errLost
		}
		k.mu.Lock()
		k.until = k.claim.until
		k.mu.Unlock()
	}
}
