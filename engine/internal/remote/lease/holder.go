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

// expire takes back what those were granted whose lease is over. What they may have used of a rate
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

// leave takes back what a holder gives back that calls nobody any more.
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

// permit names the endpoints of which the trial call is the holder's: one holder tries an endpoint,
// until its trial has ended or its lease is over.
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

// Holder reports what the calls of a Governor need, and grants it what it gets.
type Holder struct {
	run   *bus.Run
	g     *governor.Governor
	o     Options
	terms terms
	id    string
	log   *slog.Logger
	loops [2]loops // those that end first; then what may keep the accounts
	stops []func()

	keeper string // whom to ask; empty: it is not known

	mu      sync.Mutex
	heard   time.Time // when it was last answered, or began
	yielded time.Time // when the caller last asked to keep the accounts
}

// Hold has a Governor, before its first call, keep to what the run is limited by, together with all
// others, until Close or until ctx ends. Where nobody hands that out, it does, until the caller
// wants to.
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

// loops run until they are ended.
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

// Close gives back what was granted: no call is admitted any more. Calls that are under way count
// until they would have been over.
func (h *Holder) Close() {
	h.loops[0].end()
	h.leave()
	h.loops[1].end()
	h.stop()
}

// leave informs the keeper, which may be this process, that nothing is needed any more.
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

// report asks for grants, again and again.
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
			asked = time.Now() // not again at once
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
	if err != nil { // another may have taken its place
		h.keeper = ""
	}
	return a, err
}

var errNobody = errors.New("no process hands out the limits of the run")
