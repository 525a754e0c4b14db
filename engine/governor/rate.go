package governor

import (
	"math"
	"time"
)

// window is a minute plus what calls may differ in latency: calls sent within it must not
// arrive within one minute.
const window = Window

// Window is how long uses count towards a limit per minute.
const Window = time.Minute + 500*time.Millisecond

// burst is the share of a minute's amount that may be used at once after a rest. Services
// count over less than a minute, and a run that used all at once would then stand still.
const burst = Burst

// Burst is that share.
const Burst = 1.0 / 6

// rate bounds the calls or tokens used within any window: by a log of the last window, and
// by a token bucket that spreads them evenly.
type rate struct {
	limit  float64 // per window
	used   []*use  // within the last window, oldest first
	sum    float64 // of used
	level  float64 // of the bucket; below 0 after a use larger than the bucket
	filled time.Time
}

// use is an amount with its time.
type use struct {
	at     time.Time
	amount float64
	gone   bool // it left the window
}

// newRate returns nil where there is no limit.
func newRate(limit int, now time.Time) *rate {
	if limit <= 0 {
		return nil
	}
	r := &rate{limit: float64(limit), filled: now}
	r.level = r.capacity()
	return r
}

func (r *rate) capacity() float64 { return max(r.limit*burst, 1) }

// perSecond is how fast the bucket fills.
func (r *rate) perSecond() float64 { return r.limit / time.Minute.Seconds() }

// wait returns how long to wait until an amount may be used; 0: now. An amount above the
// limit waits until the window is empty.
func (r *rate) wait(now time.Time, amount float64) time.Duration {
	if r == nil {
		return 0
	}
	r.advance(now)
	var until time.Duration
	room := r.limit - min(amount, r.limit) - r.sum
	for i := 0; room < -rounding && i < len(r.used); i++ {
		room += r.used[i].amount
		until = r.used[i].at.Add(window).Sub(now)
	}
	if missing := min(amount, r.capacity()) - r.level; missing > rounding {
		until = max(until, time.Duration(math.Ceil(missing/r.perSecond()*float64(time.Second))))
	}
	return until
}

// rounding bounds the error of sums.
const rounding = 1e-6

// take uses an amount.
func (r *rate) take(now time.Time, amount float64) *use {
	if r == nil {
		return nil
	}
	r.advance(now)
	u := &use{at: now, amount: amount}
	r.used = append(r.used, u)
	r.sum += amount
	r.level -= amount
	return u
}

// correct replaces the amount of a use by the real one.
func (r *rate) correct(u *use, amount float64) {
	if r == nil || u == nil || u.gone {
		return
	}
	r.sum += amount - u.amount
	r.level = min(r.level+u.amount-amount, r.capacity())
	u.amount = amount
}

// advance drops uses that left the window and refills the bucket.
func (r *rate) advance(now time.Time) {
	n := 0
	for ; n < len(r.used) && now.Sub(r.used[n].at) >= window; n++ {
		r.sum -= r.used[n].amount
		r.used[n].gone = true
	}
	if r.used = r.used[n:]; len(r.used) == 0 {
		r.sum = 0
	}
	r.level = min(r.level+now.Sub(r.filled).Seconds()*r.perSecond(), r.capacity())
	r.filled = now
}
