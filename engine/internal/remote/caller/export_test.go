package caller

import (
	"context"
	"time"
)

// SweepAt is Sweep at another time.
func (c *Caller) SweepAt(ctx context.Context, now time.Time) error { return c.sweep(ctx, now) }

// Stop ends the caller's work, and tells nobody.
func (c *Caller) Stop() {
	c.stop(errEnded)
	c.parts.Wait()
}
