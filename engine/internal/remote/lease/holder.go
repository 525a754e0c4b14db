package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Holder asks the keeper for each call of a Governor. It is the Governor's Admitter.
type Holder struct {
	room   Room
	g      *governor.Governor // nil: there is no budget
	o      Options
	terms  terms
	id     string
	keeper *Keeper // that this process becomes if there is no other one
	cancel context.CancelFunc
	loop   sync.WaitGroup
	stops  []func()
	wake   chan struct{} // has an element if something is to be reported

	mu     sync.Mutex
	claim  string               // ID of the claim of the last known keeper
	unsure bool                 // there may be another keeper
	last   uint64               // number of the last call
	number uint64               // of the last report
	sent   map[uint64]time.Time // when the latest reports were sent
	calls  map[uint64]*call
	waits  []terminal.Wait // what the keeper last said that calls wait for; its times are of the keeper's clock
	told   time.Time       // when the keeper said what waits has, by the keeper's clock
	heard  time.Time       // when its last answer came, by this process's clock; before that, the start
}

// call is a call of this process.
type call struct {
	asked   asked
	listed  uint64 // number of the first report to the present keeper that described it; 0: none did
	known   bool   // the keeper has that report
	sent    bool
	result  *sdk.Result // nil: it has not ended
	verdict chan error  // receives one value
}

// Hold asks the room's keeper for each call of a Governor until Close or until ctx ends. The Holder is to be the Governor's
// Admitter, and tells it when the budget is used up; nil: the room has no budget. If no process is the keeper, the Holder
// becomes it.
func Hold(ctx context.Context, room Room, g *governor.Governor, o Options) (*Holder, error) {
	h := &Holder{
		room: room, g: g, o: o, terms: o.lasting(), id: rand.Text(), keeper: newKeeper(room, o), wake: make(chan struct{}, 1),
		sent: map[uint64]time.Time{}, calls: map[uint64]*call{}, heard: time.Now(), unsure: true,
	}
	for subject, hear := range map[string]func([]byte){
		tidings + h.id: h.hear,
		turns: func([]byte) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.unsure = true
			h.want()
		},
	} {
		stop, err := room.Hear(subject, hear)
		if err != nil {
			h.stop()
			return nil, err
		}
		h.stops = append(h.stops, stop)
	}
	h.keeper.begin(ctx, nil, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.unsure
	})
	ctx, h.cancel = context.WithCancel(ctx)
	h.loop.Go(func() { h.report(ctx) })
	return h, nil
}

func (h *Holder) stop() {
	for _, stop := range h.stops {
		stop()
	}
}

// Close ends the Holder. Calls under way count until the keeper has not heard of them for ten seconds.
func (h *Holder) Close() {
	h.cancel()
	h.loop.Wait()
	h.keeper.Close()
	h.stop()
	ctx, done := context.WithTimeout(context.Background(), h.terms.fresh/2)
	defer done()
	if err := h.ask(ctx, true); err != nil {
		h.o.Log.Debug("the keeper of the limits does not know that this process has left", "error", err)
	}
}

// Admit implements governor.Admitter.
func (h *Holder) Admit(ctx context.Context, s governor.Stage, about sdk.Call) (end func(sdk.Result), err error) {
	c := &call{asked: asked{Stage: s.Name, Price: s.Price, Required: s.Required, Covered: s.Covered, Call: about}, verdict: make(chan error, 1)}
	if s.Limit != nil {
		c.asked.Block = s.Limit.Name
	}
	h.mu.Lock()
	h.last++
	id := h.last
	h.calls[id] = c
	h.mu.Unlock()
	h.want()
	select {
	case err = <-c.verdict:
	case <-ctx.Done():
		h.mu.Lock()
		if _, waits := h.calls[id]; waits && !c.sent {
			delete(h.calls, id)
			c.verdict <- ctx.Err()
		}
		h.mu.Unlock()
		h.want()
		err = <-c.verdict
	}
	if err != nil {
		return nil, err
	}
	return func(o sdk.Result) {
		h.mu.Lock()
		c.result = &o
		h.mu.Unlock()
		h.want()
	}, nil
}

// want has a report sent as soon as possible.
func (h *Holder) want() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// report reports to the keeper: what happens while it is asked goes with the next report.
func (h *Holder) report(ctx context.Context) {
	for ctx.Err() == nil {
		bounded, done := context.WithTimeout(ctx, h.terms.fresh/2)
		err := h.ask(bounded, false)
		done()
		if err != nil {
			h.o.Log.Debug("the keeper of the limits is not reached", "error", err)
			_ = support.SleepFor(ctx, h.terms.every/20) // the loop notices the end of ctx
			continue
		}
		due := time.NewTimer(h.every())
		select {
		case <-due.C:
		case <-h.wake:
		case <-ctx.Done():
		}
		due.Stop()
	}
}

// every returns the time until the next report.
func (h *Holder) every() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if !c.sent {
			return h.terms.every
		}
	}
	return 2 * h.terms.every
}

// errNobody says that no process has the claim.
var errNobody = errors.New("no process admits calls now")

// ask sends a report to the keeper, and applies its answer.
func (h *Holder) ask(ctx context.Context, leaving bool) error {
	h.mu.Lock()
	claim, unsure := h.claim, h.unsure
	h.mu.Unlock()
	if unsure {
		r, _, err := read(ctx, h.room)
		if err != nil {
			return err
		}
		if r.ID == "" {
			return errNobody
		}
		h.turn(r.ID)
		claim = r.ID
	}
	data, err := json.Marshal(h.next(leaving))
	if err != nil {
		return err
	}
	if data, err = h.room.Ask(ctx, reports+claim, data); err == nil && len(data) == 0 {
		err = errLost
	}
	if err != nil { // another keeper may have taken over
		h.mu.Lock()
		h.unsure = true
		h.mu.Unlock()
		return err
	}
	h.hear(data)
	return nil
}

// turn notes who is the keeper. A new one learns of all calls with the next report, and what an earlier one still
// says no longer counts.
func (h *Holder) turn(claim string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unsure = false; h.claim != claim {
		h.claim = claim
		h.describe()
	}
}

// describe has all calls described again. The caller holds mu.
func (h *Holder) describe() {
	for _, c := range h.calls {
		c.listed, c.known = 0, false
	}
}

// next returns the next report.
func (h *Holder) next(leaving bool) report {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	now := time.Now()
	h.sent[h.number] = now
	if len(h.sent) > 100 {
		maps.DeleteFunc(h.sent, func(_ uint64, at time.Time) bool { return !within(now, at, h.terms.fresh) })
	}
	r := report{Holder: h.id, Number: h.number, Leaving: leaving, Ended: map[uint64]sdk.Result{}, Asked: map[uint64]*asked{}}
	for id, c := range h.calls {
		switch {
		case c.result != nil:
			r.Ended[id] = *c.result
		case c.sent:
			r.Sent = append(r.Sent, id)
		default:
			r.Waiting = append(r.Waiting, id)
		}
		if !c.known {
			r.Asked[id], c.listed = &c.asked, cmp.Or(c.listed, h.number)
		}
	}
	slices.Sort(r.Waiting) // the order in which they wait
	return r
}

// hear applies what the keeper says.
func (h *Holder) hear(data []byte) {
	var n news
	if err := json.Unmarshal(data, &n); err != nil {
		h.o.Log.Debug("what the keeper of the limits says cannot be read", "error", err)
		return
	}
	h.mu.Lock()
	former := n.Keeper != h.claim
	h.mu.Unlock()
	if former {
		return
	}
	if h.g != nil {
		h.g.Exhausted(n.Exhausted)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Keeper != h.claim {
		return
	}
	now, since := time.Now(), h.sent[n.Number]
	h.heard = now
	if n.Forgotten {
		h.describe()
	}
	for _, c := range h.calls {
		c.known = c.known || c.listed > 0 && c.listed <= n.Number
	}
	for _, d := range n.Decided {
		c := h.calls[d.ID]
		switch {
		case c == nil || c.sent:
		case d.Refused != "":
			delete(h.calls, d.ID)
			c.verdict <- d.err()
			h.want()
		case within(now, since, h.terms.fresh):
			c.sent = true
			c.verdict <- nil
		}
	}
	for _, id := range n.Ended {
		if c := h.calls[id]; c != nil && c.result != nil {
			delete(h.calls, id)
			h.want()
		}
	}
	h.waits, h.told = n.Waits, n.At
}

// within reports whether less than d has passed since a time. It also compares the wall clock, because the monotonic
// clock stands still while a machine sleeps.
func within(now, since time.Time, d time.Duration) bool {
	return now.Sub(since) < d && now.Round(0).Sub(since.Round(0)) < d
}

// Waits implements governor.Admitter.
func (h *Holder) Waits(now time.Time, say func(terminal.Wait)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.heard) < h.terms.lease {
		for _, w := range h.waits {
			w.Since = w.Since.Add(h.heard.Sub(h.told))
			if !w.Next.IsZero() {
				w.Next = w.Next.Add(h.heard.Sub(h.told))
			}
			say(w)
		}
		return
	}
	calls := map[string]int{}
	for _, c := range h.calls {
		if !c.sent {
			calls[c.asked.Stage]++
		}
	}
	for stage, n := range calls {
		say(terminal.Wait{Stage: stage, Calls: n, Why: errNobody.Error(), Since: h.heard, After: terminal.WaitLate})
	}
}
