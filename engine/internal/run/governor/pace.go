package governor

import (
	"time"

	"github.com/racflow/racflow/sdk"
)

// pace finds how many calls at a time a service on this machine answers fastest, where no limit block says
// it: a model on a CPU mostly takes one, and more only wait there; one on a GPU takes many. It begins with
// one, and doubles them as long as that raises the answers per second. nil: the limit is given.
type pace struct {
	most    int // calls at a time that are not exceeded
	best    int // calls at a time with the highest rate so far
	rate    float64
	settled bool

	begun time.Time // of the measure under way; zero: none is
	ended int       // calls since then
}

// faster is how much the rate has to grow for more calls at a time.
const faster = 1.15

// next returns how many calls at a time come after one has ended with so many at a time. Waiting reports
// whether others wait: else nothing is measured.
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
