package lease

import (
	"context"
	mrand "math/rand/v2"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// watch takes the claim over where nobody answers.
func (h *Holder) watch(ctx context.Context) {
	k := newKeeper(h.run, h.o.Limits, h.o)
	for support.SleepFor(ctx, h.terms.every+mrand.N(h.terms.every)) == nil {
		h.mu.Lock()
		waits := time.Since(h.heard) < h.terms.claim/6 || time.Since(h.yielded) < h.terms.claim
		h.mu.Unlock()
		if waits {
			continue
		}
		bounded, done := context.WithTimeout(ctx, h.terms.claim/3)
		mine, err := k.claim.take(bounded)
		done()
		if err != nil {
			h.log.Debug("the limits of the run are not taken over", "error", err)
		}
		if mine {
			h.log.Info("nobody hands out the limits of the run: this process does")
			err := h.stand(ctx, k)
			h.log.Info("this process hands out the limits of the run no more", "reason", err)
		}
	}
}

// stand keeps the book until the caller wants to.
func (h *Holder) stand(ctx context.Context, k *Keeper) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, err := h.run.Hear(yields, func([]byte) { cancel(errYield) })
	if err != nil {
		return err
	}
	defer stop()
	return k.reign(ctx)
}
