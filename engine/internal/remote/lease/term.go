package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// term is the time for which a process has a claim: a Governor decides on the calls of all holders.
type term struct {
	k   *Keeper
	g   *governor.Governor
	ctx context.Context
	end context.CancelFunc

	wake  chan struct{} // has an element if the loop has something to do
	ready chan struct{} // closed when calls may be admitted

	mu       sync.Mutex
	record   Record // as last written
	revision uint64
	until    time.Time // end of the claim
	wrote    time.Time
	began    time.Time
	former   map[string]bool // Record.Holders of the earlier keeper that have not reported yet
	holders  map[string]*holder
}

// holder is what the keeper knows of a Holder.
type holder struct {
	id     string
	number uint64    // of its last report
	seen   time.Time // when that came
	calls  map[uint64]*admission
	tell   bool // a decision is to be sent
	waits  []terminal.Wait
}

// admission is a call of a holder.
type admission struct {
	call     *governor.Admitted // nil: it was not admitted
	err      error              // why not
	decided  bool
	covered  bool // the record covers it: the holder may know of it
	sent     bool
	ended    bool
	report   uint64 // number of the last report that named it
	withdraw context.CancelFunc
}

// newTerm continues after a record, which is the zero value if there was no keeper yet.
func newTerm(k *Keeper, r Record, revision uint64) *term {
	now, limits := time.Now(), k.o.Limits
	if revision == 0 {
		r.Ceiling.Amount = limits.Spent
	}
	switch {
	case now.Sub(r.At) > longAgo:
		r.Recent = nil
	case r.ID != "": // it was not given back
		r.Recent = limits.used()
	}
	for name, used := range r.Recent { // what the earlier keeper admitted may still be about to be sent
		used.At = now.Add(k.terms.fresh)
		r.Recent[name] = used
	}
	t := &term{
		k: k, wake: make(chan struct{}, 1), ready: make(chan struct{}), began: now, revision: revision,
		former: map[string]bool{}, holders: map[string]*holder{}, record: Record{ID: rand.Text(), Limits: limits},
	}
	t.ctx, t.end = context.WithCancel(context.Background())
	t.g = governor.New(t.ctx, governor.Options{Budget: pipeline.Budget(limits.Budget), Log: k.o.Log, Share: k.o.Share, Recent: r.Recent})
	t.g.Spend(r.Ceiling)
	for _, id := range r.Holders {
		t.former[id] = true
	}
	t.open(now)
	return t
}

// longAgo is how old a record is, by clocks that may differ by minutes, whose calls no limit per minute counts any more.
const longAgo = 10 * time.Minute

// open begins to admit calls, once all holders of the earlier keeper have reported what is under way, or their calls
// no longer count. The caller holds mu.
func (t *term) open(now time.Time) {
	select {
	case <-t.ready:
		return
	default:
	}
	if len(t.former) == 0 || now.Sub(t.began) >= t.k.terms.lease {
		clear(t.former)
		close(t.ready)
	}
}

// keep admits calls until ctx ends or the claim is lost. The error says which.
func (t *term) keep(ctx context.Context) error {
	defer t.close()
	stop, err := t.k.room.Serve(reports+t.record.ID, t.answer)
	if err != nil {
		return err
	}
	defer stop()
	if err := t.k.room.Tell(turns, nil); err != nil {
		t.k.o.Log.Debug("the others learn later who keeps the limits", "error", err)
	}
	tick := time.NewTicker(t.k.terms.claim / 12)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.look()
		case <-t.wake:
		case <-ctx.Done():
			t.giveBack()
			return context.Cause(ctx)
		}
		if err := t.step(); err != nil {
			return err
		}
	}
}

// look does what is due from time to time.
func (t *term) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.open(now)
	for _, h := range t.holders {
		h.waits = nil
		if now.Sub(h.seen) >= t.k.terms.lease {
			t.lose(h)
		}
	}
	t.g.Waits(now, func(w terminal.Wait) {
		id, stage, _ := strings.Cut(w.Stage, "/")
		if h := t.holders[id]; h != nil {
			w.Stage = stage
			h.waits = append(h.waits, w)
		}
	})
}

// lose ends the calls of a holder that no longer reports. Those that may have been sent count as spent with their maximum.
func (t *term) lose(h *holder) {
	for id, a := range h.calls {
		t.drop(h, id, a, true)
	}
	delete(t.holders, h.id)
}

// drop forgets a call that its holder no longer has, or is lost with it.
func (t *term) drop(h *holder, id uint64, a *admission, lost bool) {
	delete(h.calls, id)
	switch {
	case !a.decided:
		a.withdraw()
	case a.call == nil || a.ended:
	case a.sent || lost && a.covered: // it may have been sent
		a.call.End(sdk.Result{Status: sdk.StatusLeft, Lost: true})
	default:
		a.call.Withdraw()
	}
}

// step renews the claim if that is due or if the record does not cover all decisions, and sends the decisions.
func (t *term) step() error {
	t.mu.Lock()
	due := time.Since(t.wrote) >= t.k.terms.claim/3 || !t.covers()
	until := t.until
	t.mu.Unlock()
	if due {
		ctx, done := context.WithDeadline(t.ctx, until)
		err := t.write(ctx)
		done()
		switch {
		case errors.Is(err, errLost) || err != nil && !time.Now().Before(until):
			return errLost
		case err != nil:
			t.k.o.Log.Debug("the claim to the limits is not renewed yet", "error", err)
			return nil
		}
	}
	for id, n := range t.told() {
		data, err := json.Marshal(n)
		if err == nil {
			err = t.k.room.Tell(tidings+id, data)
		}
		if err != nil {
			t.k.o.Log.Debug("a process learns later which of its calls may be sent", "error", err)
		}
	}
	return nil
}

// covers reports whether the record as it was written holds for all decisions, and notes that it does.
func (t *term) covers() bool {
	spent, reserved, _ := t.g.Spending()
	for _, h := range t.holders {
		if !slices.Contains(t.record.Holders, h.id) {
			return false
		}
	}
	if b := t.record.Limits.Budget; b != (Amount{}) {
		has, covered := spent.Amount.Plus(reserved), t.record.Ceiling.Amount
		if b.Cost > 0 && has.Cost > covered.Cost+rounding*b.Cost || b.Tokens > 0 && has.Tokens > covered.Tokens {
			return false
		}
	}
	for _, h := range t.holders {
		for _, a := range h.calls {
			a.covered = a.decided
		}
	}
	return true
}

// rounding is the error that sums of money may have, as a share of the budget.
const rounding = 1e-6

// write renews the claim with a record that covers all decisions, and as many calls again.
func (t *term) write(ctx context.Context) error {
	t.mu.Lock()
	r, revision := t.successor(), t.revision
	_, reserved, _ := t.g.Spending()
	t.mu.Unlock()
	b, c := r.Limits.Budget, &r.Ceiling.Amount
	c.Cost, c.Tokens = max(c.Cost, min(c.Cost+reserved.Cost, b.Cost)), max(c.Tokens, min(c.Tokens+reserved.Tokens, b.Tokens))
	revision, until, err := t.k.swap(ctx, r, revision)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record, t.revision, t.until, t.wrote = r, revision, until, time.Now()
	t.covers() // decisions that came meanwhile may need another record
	return nil
}

// successor returns the record that a successor needs now.
func (t *term) successor() Record {
	spent, reserved, why := t.g.Spending()
	r := Record{ID: t.record.ID, Name: t.k.o.Name, Limits: t.record.Limits, At: time.Now(), Why: why}
	if r.Limits.Budget != (Amount{}) {
		r.Ceiling = governor.Spending{Amount: spent.Amount.Plus(reserved), Calls: spent.Calls}
	}
	for id := range t.former {
		r.Holders = append(r.Holders, id)
	}
	for id := range t.holders {
		r.Holders = append(r.Holders, id)
	}
	return r
}

// told returns the decisions to be sent, by holder.
func (t *term) told() map[string]news {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]news{}
	for id, h := range t.holders {
		if !h.tell {
			continue
		}
		h.tell = false
		n := t.news(h)
		for id, a := range h.calls {
			switch {
			case a.covered && !a.sent:
				n.Decided = append(n.Decided, h.decided(id, a.err))
			case a.decided && !a.covered:
				h.tell = true
			}
		}
		all[id] = n
	}
	return all
}

func (t *term) news(h *holder) news {
	_, _, why := t.g.Spending()
	return news{Keeper: t.record.ID, Number: h.number, Exhausted: why, Waits: h.waits, At: time.Now()}
}

// close admits no more calls, and returns until when the claim lasted.
func (t *term) close() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := t.until
	t.until = time.Time{}
	t.end()
	return until
}

// giveBack ends the claim so that the next keeper can take over at once.
func (t *term) giveBack() {
	until := t.close()
	ctx, done := context.WithDeadline(context.Background(), until)
	defer done()
	t.mu.Lock()
	r, revision := t.successor(), t.revision
	t.mu.Unlock()
	r.ID, r.Recent = "", t.g.Recent()
	if _, _, err := t.k.swap(ctx, r, revision); err != nil {
		t.k.o.Log.Debug("the claim to the limits stands until it is over", "error", err)
	}
}

// answer applies a report; nil: this process is not the keeper, has a newer report, or has not recorded the holder yet.
func (t *term) answer(data []byte) []byte {
	var r report
	if err := json.Unmarshal(data, &r); err != nil || r.Holder == "" {
		t.k.o.Log.Warn("a report on limits cannot be read", "error", err)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	h := t.holders[r.Holder]
	if !now.Before(t.until) || h != nil && r.Number <= h.number {
		return nil
	}
	if h == nil {
		h = &holder{id: r.Holder, calls: map[uint64]*admission{}}
		t.holders[h.id] = h
		delete(t.former, h.id)
	}
	h.number, h.seen = r.Number, now
	n := t.apply(h, r)
	t.open(now)
	if !slices.Contains(t.record.Holders, h.id) { // a successor has to know of this holder before it may rely on an answer
		t.signal()
		return nil
	}
	if r.Leaving && len(h.calls) == 0 {
		delete(t.holders, h.id)
	}
	data, err := json.Marshal(n)
	if err != nil {
		t.k.o.Log.Warn("a report on limits is not answered", "error", err)
		return nil
	}
	return data
}

// apply compares the calls that a holder has with those that are known, and answers.
func (t *term) apply(h *holder, r report) news {
	n := t.news(h)
	for _, id := range r.Waiting {
		if a := t.find(h, id, r, false); a != nil && a.covered {
			n.Decided = append(n.Decided, h.decided(id, a.err))
		}
	}
	for _, id := range r.Sent {
		if a := t.find(h, id, r, true); a != nil && a.call != nil && !a.sent {
			a.sent = true
			a.call.Sent()
		}
	}
	for id, result := range r.Ended {
		if a := t.find(h, id, r, true); a != nil && a.call != nil {
			if !a.ended {
				a.ended = true
				a.call.End(result)
			}
			n.Ended = append(n.Ended, id)
		}
	}
	for id, a := range h.calls {
		if a.report != r.Number {
			t.drop(h, id, a, false)
		}
	}
	n.Forgotten = len(h.calls) < len(r.Waiting)+len(r.Sent)+len(r.Ended)
	return n
}

// find returns a call of a report; nil: it is unknown and the report does not describe it. It begins to decide on a new
// call, or adopts one that an earlier keeper admitted.
func (t *term) find(h *holder, id uint64, r report, sent bool) *admission {
	a, about := h.calls[id], r.Asked[id]
	if a == nil && about == nil {
		return nil
	}
	if a == nil {
		a = t.add(h, about, sent)
		h.calls[id] = a
	}
	a.report = r.Number
	return a
}

func (t *term) add(h *holder, about *asked, sent bool) *admission {
	a := &admission{}
	s := governor.Stage{
		Name: h.id + "/" + about.Stage, Limit: t.record.Limits.limit(about.Block), Price: about.Price,
		Required: about.Required, Covered: about.Covered,
	}
	if sent {
		a.call, a.decided, a.covered, a.sent = t.g.Adopt(s, about.Call), true, true, true
		return a
	}
	ctx, withdraw := context.WithCancel(t.ctx)
	a.withdraw = withdraw
	go func() {
		select {
		case <-t.ready:
		case <-ctx.Done():
			return
		}
		call, err := t.g.Admit(ctx, s, about.Call)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case ctx.Err() == nil:
			a.call, a.err, a.decided, h.tell = call, err, true, true
			t.signal()
		case err == nil:
			call.Withdraw()
		}
	}()
	return a
}

// signal wakes the loop.
func (t *term) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
