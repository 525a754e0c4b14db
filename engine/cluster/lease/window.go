package lease

import (
	"math"
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// Uses are counted in slots: a use leaves the window with the last one of its slot.
const (
	slotFor = 250 * time.Millisecond
	slots   = int(governor.Window/slotFor) + 1
)

// rounding bounds the error of sums.
const rounding = 1e-6

// window bounds what all holders together use within a minute, as the governor's own rate does:
// by the sum over the last window and by a bucket that spreads uses evenly. What is granted and
// not used counts until it is used or given back.
type window struct {
	limit  float64
	began  time.Time // of slot 0
	used   [slots]float64
	slot   int64   // the current one, from 0; its place is slot mod slots
	sum    float64 // of used
	held   float64 // granted and not used
	level  float64 // of the bucket
	filled time.Time
}

// newWindow returns nil where there is no limit.
func newWindow(limit int, now time.Time) *window {
	if limit <= 0 {
		return nil
	}
	w := &window{limit: float64(limit), began: now, filled: now}
	w.level = w.capacity()
	return w
}

func (w *window) capacity() float64 { return max(w.limit*governor.Burst, 1) }

// advance drops what left the window and refills the bucket.
func (w *window) advance(now time.Time) {
	for current := int64(now.Sub(w.began) / slotFor); w.slot < current; {
		if current-w.slot > int64(slots) {
			w.slot = current - int64(slots)
		}
		w.slot++
		at := w.slot % int64(slots)
		w.sum -= w.used[at]
		w.used[at] = 0
	}
	if w.sum < rounding {
		w.sum = 0
	}
	w.level = min(w.level+now.Sub(w.filled).Minutes()*w.limit, w.capacity())
	w.filled = now
}

// use adds an amount to the current slot, which it returns.
func (w *window) use(amount float64) int64 {
	w.add(w.slot, amount)
	return w.slot
}

// add changes what was used in a slot, if that has not left the window.
func (w *window) add(slot int64, amount float64) {
	if w.slot-slot < int64(slots) {
		w.used[slot%int64(slots)] += amount
		w.sum += amount
		w.level = min(w.level-amount, w.capacity())
	}
}

// hold changes what is granted and not used.
func (w *window) hold(amount float64) {
	w.held += amount
	w.level = min(w.level-amount, w.capacity())
}

// room is how much may be granted now.
func (w *window) room() float64 { return max(min(w.limit-w.sum-w.held, w.level), 0) }

// admits reports whether an amount may be granted: one that is larger than the bucket once that is
// full.
func (w *window) admits(amount float64) bool {
	return w.sum+w.held+amount <= w.limit+rounding && w.level >= min(amount, w.capacity())-rounding
}

// Record is a window as a ledger has it.
type Record struct {
	Used []float64 `json:"used"` // by slot of 250 ms, the current one first, without the empty ones at the end
	Held float64   `json:"held"`
}

func (w *window) record() *Record {
	if w == nil {
		return nil
	}
	r := &Record{Held: math.Ceil(w.held)}
	for i := range int64(slots) {
		if used := w.used[(w.slot-i+int64(slots))%int64(slots)]; used > rounding || len(r.Used) > 0 || i == 0 {
			r.Used = append(r.Used, used)
		}
	}
	for len(r.Used) > 0 && r.Used[len(r.Used)-1] <= rounding {
		r.Used = r.Used[:len(r.Used)-1]
	}
	return r
}

// recall takes over what a window has counted that was written some time ago. What was granted
// then may have been used until now.
func (w *window) recall(r *Record, age time.Duration) {
	if w == nil || r == nil {
		return
	}
	w.slot += int64(slots) // so that all the slots of the record are before it, and none below 0
	w.began = w.began.Add(-time.Duration(slots) * slotFor)
	for i, used := range r.Used {
		if back := int64(i) + int64(age/slotFor); back < int64(slots) {
			w.add(w.slot-back, used)
		}
	}
	w.use(r.Held)
	w.level = 0
}
