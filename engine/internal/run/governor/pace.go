package governor

import (
	"time"

	"github.com/racflow/racflow/sdk"
)

// pace finds the best concurrency for a service on this machine, if no limit block sets it. A model on a
// CPU mostly answers one call at a time, and more calls only wait; a model on a GPU answers many at a
// time. pace begins with one call, and doubles the number as long as that raises the answers per second.
// nil: a limit is given.
type pace struct {
	most    int // maximum concurrent calls
	best    int // concurrent calls with the highest rate so far
	rate    float64
	settled bool

	begun time.Time // start of the present measurement; zero: there is none
	ended int       // calls ended since begun
}

// faster is the factor by which the rate has to grow to justify more concurrent calls.
const faster = 1.15

// next returns the new concurrency after a call has ended at the concurrency level. It measures only if
// other calls are waiting.
func (p *pace) next(now time.Time, level int, status sdk.Status, waiting bool) int {
	switch {
	case p == nil || p.settled:
		return level
	case status == sdk.StatusBusy:
		p.settled = true
		return max(level/2, 1)
	case status != sdk.StatusOK || !waiting:
		p.begun = time.Time{}
		return level
	case p.begun.IsZero():
		p.begun, p.ended = now, 0
		return level
	}
	if p.ended++; p.ended < 2*level+2 {
		return level
	}
	rate := float64(p.ended) / now.Sub(p.begun).Seconds()
	p.begun = time.Time{}
	if rate < faster*p.rate {
		p.settled = true
		return p.best
	}
	p.rate, p.best = rate, level
	p.settled = level == p.most
	return min(2*level, p.most)
}
