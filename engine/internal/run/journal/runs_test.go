package journal

import "time"

// At returns the runs as they are at the times of a clock.
func (r Runs) At(clock func() time.Time) Runs {
	r.clock = clock
	return r
}
