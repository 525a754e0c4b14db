package governor

import "time"

// lacks says what was not granted that a call needs; empty: nothing, or the limits are the
// Governor's own.
func (c *Governor) lacks(l *limiter, w *waiter, now time.Time) string {
	g := l.given
	switch {
	case g == nil:
		return ""
	case c.together.over(now):
		return "no process hands out the limits of the run now"
	case !c.affords(w.estimate, now):
		return "the run's budget has no room until calls under way have ended"
	case l.inFlight >= g.share && l.inFlight == 0:
		return "other machines have the calls at a time that the limit allows"
	case l.inFlight < g.share && !g.allows(now, l.inFlight, w):
		return l.allows() + ", for all machines together"
	}
	return ""
}

// perMinute is the limit of requests or tokens; 0: any number.
func (l *limiter) perMinute(tokens bool) int {
	r, g := l.requests, l.given
	switch {
	case tokens && g != nil:
		return int(g.tokens.limit)
	case g != nil:
		return int(g.requests.limit)
	case tokens:
		r = l.tokens
	}
	if r == nil {
		return 0
	}
	return int(r.limit)
}
