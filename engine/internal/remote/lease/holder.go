package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/support"
)

// ahead is the time for which a holder gets credit, of a rate or of the budget, beyond the needs of
// its waiting calls: three times the maximum time until its next report.
const ahead = 600 * time.Millisecond

// credit is a holder's part of an amount per minute.
type credit struct {
	governor.Credit         // as last reported; Most is the present maximum
	uses            []*used // of the window, by number
	open            int64   // number of the first tally that could grow after the last report
	first           int64   // number of the first of uses; earlier ones have left the window, or a former keeper counted them
	pace            pace
	hungry          time.Time // when its first call began to wait; zero: none waits
	unused          float64   // as counted in the window
}

// used is the amount of one of the holder's tallies.
type used struct {
	number int64
	slot   int64
	amount float64
}

// pace measures how fast an amount grows.
type pace struct {
	at        time.Time
	total     float64
	perSecond float64
}

// see measures over at least 0.3 s. The pace rises at once and falls by half at a time.
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

// report applies a holder's report.
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

// use counts a tally. While the tally still grows, all of it counts as used just now.
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

// count counts the credit that was granted and is unused.
func (c *credit) count(w *window, most float64) {
	c.Most = most
	unused := max(most-c.Used, 0)
	w.hold(unused - c.unused)
	c.unused = unused
}

// grant decides how much a holder may use in total. before is the need of the first calls of the
// others (a number) holders that have waited longer; with whole, only whole amounts are useful.
// Credit to be returned counts until the holder has confirmed it.
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
		more = lacks // it exceeds the bucket
	case lacks > rounding && before > 0:
		more = -c.unused // a part would be useless: leave it to those who have waited longer
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

// expire takes back the grants of holders whose leases are over. What they may have used of a rate
// or of the budget counts as used.
func (b *accounts) expire(now time.Time) {
	if !now.Before(b.frozen) {
		b.former = nil
	}
	for id, h := range b.holders {
		if h.until.IsZero() || now.Before(h.until) {
			continue
		}
		h.until = time.Time{}
		for _, p := range b.pools {
			p.advance(now)
			p.lose(id)
		}
		if a := b.allowance.holders[id]; a != nil {
			a.gone = true
		}
	}
}

// leave takes back the grants of a holder that makes no more calls. Of a rate, what it was granted
// counts as used.
func (b *accounts) leave(r report) {
	b.holders[r.Holder].until = time.Time{}
	for _, p := range b.pools {
		p.lose(r.Holder)
	}
	if b.limits.Budget != (Amount{}) {
		a := b.allowance.report(time.Time{}, r.Holder, r.Budget)
		a.most, a.gone = a.took, true
	}
	delete(b.former, r.Holder)
}

// permit returns the endpoints for which the holder makes the trial call. One holder tries an
// endpoint, until its trial or its lease has ended.
func (b *accounts) permit(now time.Time, r report) []string {
	var all []string
	wants := map[string]governor.Trial{}
	for _, t := range r.Trials {
		wants[t.Endpoint] = t
		if of, ok := b.trials[t.Endpoint]; !ok || of.holder == r.Holder || !now.Before(of.until) {
			b.trials[t.Endpoint] = trial{r.Holder, now.Add(b.terms.lease)}
			all = append(all, t.Endpoint)
		}
	}
	for endpoint, of := range b.trials {
		if _, ok := wants[endpoint]; of.holder == r.Holder && !ok {
			delete(b.trials, endpoint)
		}
	}
	return all
}

// Holder reports the needs of a Governor's calls to the keeper, and passes the grants to the Governor.
type Holder struct {
	run   *bus.Run
	g     *governor.Governor
	o     Options
	terms terms
	id    string
	log   *slog.Logger
	loops [2]loops // the loops that end first; then those that may act as keeper
	stops []func()

	keeper string // ID to send reports to; empty: unknown

	mu      sync.Mutex
	heard   time.Time // when the last answer came, or the start
	yielded time.Time // when the caller last asked to be keeper
}

// Hold makes a Governor share the limits of the run with all others until Close or until ctx ends;
// call it before the Governor's first call. If no process hands out the limits, the Holder does,
// until the caller asks for that.
func Hold(ctx context.Context, run *bus.Run, g *governor.Governor, o Options) (*Holder, error) {
	h := &Holder{run: run, g: g, o: o, terms: o.lasting(), id: o.Name + "." + rand.Text(), log: o.Log, heard: time.Now()}
	g.Together(pipeline.Budget(o.Limits.Budget))
	for subject, hear := range map[string]func([]byte){breakers: h.hear, yields: func([]byte) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.yielded = time.Now()
	}} {
		stop, err := run.Hear(subject, hear)
		if err != nil {
			h.stop()
			return nil, err
		}
		h.stops = append(h.stops, stop)
	}
	h.loops[0].begin(ctx, h.report, h.announce)
	h.loops[1].begin(ctx, h.watch)
	return h, nil
}

// loops are goroutines that run until end.
type loops struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func (l *loops) begin(ctx context.Context, all ...func(context.Context)) {
	ctx, l.cancel = context.WithCancel(ctx)
	for _, loop := range all {
		l.all.Go(func() { loop(ctx) })
	}
}

func (l *loops) end() {
	l.cancel()
	l.all.Wait()
}

func (h *Holder) stop() {
	for _, stop := range h.stops {
		stop()
	}
}

// Close returns the grants: no call is admitted any more. Calls under way count until their lease
// would have ended.
func (h *Holder) Close() {
	h.loops[0].end()
	h.leave()
	h.loops[1].end()
	h.stop()
}

// leave tells the keeper, which may be this process, that this holder needs nothing more.
func (h *Holder) leave() {
	h.g.Grant(governor.Grant{})
	ctx, done := context.WithTimeout(context.Background(), h.terms.asking())
	defer done()
	r := report{Holder: h.id, Leaving: true, Demand: h.g.Demand(0)}
	for _, n := range r.Limiters {
		if n.InFlight > 0 {
			return
		}
	}
	if _, err := h.ask(ctx, r); err != nil {
		h.log.Debug("limits are not given back before their lease is over", "error", err)
	}
}

// report asks for grants repeatedly.
func (h *Holder) report(ctx context.Context) {
	acked, every := uint64(0), h.terms.every
	for ctx.Err() == nil {
		asked := time.Now()
		d := h.g.Demand(acked)
		bounded, done := context.WithTimeout(ctx, h.terms.asking())
		a, err := h.ask(bounded, report{Holder: h.id, Demand: d})
		done()
		switch {
		case err != nil:
			h.log.Debug("no limits are granted", "error", err)
			asked = time.Now() // do not ask again at once
		default:
			acked, every = d.Number, max(a.Every, h.terms.every)
			h.mu.Lock()
			h.heard = time.Now()
			h.mu.Unlock()
			h.g.Grant(governor.Grant{Until: asked.Add(a.Lease), Limiters: a.Limiters, Budget: a.Budget, Spent: a.Spent, Trials: a.Trials})
		}
		if support.SleepFor(ctx, every/10-time.Since(asked)) != nil {
			return
		}
		due := time.NewTimer(every - time.Since(asked))
		select {
		case <-due.C:
		case <-h.g.Wants():
		case <-ctx.Done():
		}
		due.Stop()
	}
}

func (h *Holder) ask(ctx context.Context, r report) (a answer, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if h.keeper == "" {
		value, revision, err := h.run.Get(ctx, ClaimKey)
		if err != nil {
			return a, err
		}
		var c Claim
		if revision == 0 {
			return a, errNobody
		}
		if err := json.Unmarshal(value, &c); err != nil {
			return a, err
		}
		h.keeper = c.ID
	}
	data, err = h.run.Ask(ctx, reports+h.keeper, data)
	if err == nil && len(data) == 0 {
		err = errLost
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil { // another keeper may have taken over
		h.keeper = ""
	}
	return a, err
}

var errNobody = errors.New("no process hands out the limits of the run")
