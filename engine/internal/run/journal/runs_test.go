package journal

import "time"

// At returns the runs with another clock.
func (r Runs) At(clock func() time.Time) Runs {
	r.clock = clock
	return r
}
