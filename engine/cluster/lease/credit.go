package lease

import (
	"math"
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// ahead is for how long a holder gets credit, of the rate or of the budget, beyond what its
// waiting calls need: three times as long as it may be until it reports again.
const ahead = 600 * time.Millisecond

// credit is what a holder has of an amount per minute.
type credit struct {
	governor.Credit         // as last reported; Most: the most that it may have
	uses            []*used // by number, of the window
	open            int64   // number of the first that was added to after the last report
	first           int64   // number of the first of them: those before it left the window, or another keeper counted them
	pace            pace
	hungry          time.Time // since when its first call waits; zero: none does
	unused          float64   // as counted in the window
}

// used is what one of the holder's tallies adds to.
type used struct {
	number int64
	slot   int64
	amount float64
}

// pace is how fast an amount grows.
type pace struct {
	at        time.Time
	total     float64
	perSecond float64
}

// see measures over 0.3 s at least. It rises at once and falls by halves.
func (p *pace) see(now time.Time, total float64) {
	d := now.Sub(p.at)
	if p.at.IsZero() {
		p.at, p.total = now, total
	}
	if d < ahead/2 {
		return
	}
	fresh := (total - p.total) / d.Seconds()
	p.perSecond = max(fresh, (p.perSecond+fresh)/2)
	p.at, p.total = now, total
}

// report takes over what a holder says.
func (c *credit) report(now time.Time, w *window, r governor.Credit, uses []use, tally int64) {
	c.Credit = r
	c.pace.see(now, r.Taken)
	for _, u := range uses {
		if u.number >= c.first {
			c.use(w, u)
		}
	}
	for len(c.uses) > 0 && w.slot-c.uses[0].slot >= int64(slots) {
		c.first = c.uses[0].number + 1
		c.uses = c.uses[1:]
	}
	c.open = tally
	c.count(w, r.Most)
}

// starve notes whether the holder's first call waits for credit.
func (c *credit) starve(now time.Time, waits bool) {
	switch {
	case !waits || c.unused >= c.First-rounding:
		c.hungry = time.Time{}
	case c.hungry.IsZero():
		c.hungry = now
	}
}

// use counts a tally. As long as it was added to, all of it may have been used just now.
func (c *credit) use(w *window, u use) {
	for _, o := range c.uses {
		if o.number == u.number && o.amount != u.amount {
			w.add(o.slot, -o.amount)
			if w.slot-o.slot < int64(slots) && u.number >= c.open {
				o.slot = w.slot
			}
			o.amount = u.amount
			w.add(o.slot, o.amount)
		}
		if o.number == u.number {
			return
		}
	}
	c.uses = append(c.uses, &used{u.number, w.use(u.amount), u.amount})
}

type use struct {
	number int64
	amount float64
}

// count counts what may have been granted and is not used.
func (c *credit) count(w *window, most float64) {
	c.Most = most
	unused := max(most-c.Used, 0)
	w.hold(unused - c.unused)
	c.unused = unused
}

// grant decides up to what a holder may use. before is what the first calls of holders need that
// have waited for longer, of which there are others; whole: only whole amounts are of use.
// What is to be given back counts until the holder has said that it is.
func (c *credit) grant(w *window, waits bool, before float64, others int, whole bool) (most float64) {
	want, first := c.pace.perSecond*ahead.Seconds(), 0.0
	if waits {
		want, first = want+max(c.Waiting, c.First), c.First
	}
	room := w.room() - before
	fair := room / float64(others+1)
	if whole {
		want, room, fair = math.Ceil(want), math.Floor(room+rounding), math.Floor(fair+rounding)
	}
	more, lacks := want-c.unused, first-c.unused
	switch {
	case more <= 0:
	case lacks > rounding && room >= lacks:
		more = min(more, max(lacks, fair))
	case lacks > rounding && before == 0 && w.admits(lacks):
		more = lacks // it is larger than the bucket
	case lacks > rounding && before > 0:
		more = -c.unused // a part helps nobody: it is for who has waited for longer
	case lacks > rounding:
		more = 0
	default:
		more = max(min(more, fair), 0)
	}
	if more > 0 {
		c.count(w, c.Used+c.unused+more)
		c.hungry, more = time.Time{}, 0
	}
	return c.Used + c.unused + more
}
