package guard

import (
	"net/http"
	"slices"
	"time"
)

// callers lets callers with a token through, so many at a time, and bounds what they send.
func (g *Guard) callers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(g.options.Public, r.URL.Path) {
			r.Body = http.NoBody
			h.ServeHTTP(w, r)
			return
		}
		if t := g.options.Tokens; t != nil && !t.admit(r.Header.Get("Authorization")) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="racflow"`)
			NewProblem(http.StatusUnauthorized, "send a valid token as Authorization: Bearer TOKEN").ServeHTTP(w, r)
			return
		}
		select {
		case g.working <- struct{}{}:
			defer func() { <-g.working }()
		default:
			p := NewProblem(http.StatusTooManyRequests, "as many requests as this server takes at a time are under way")
			p.RetryAfter = time.Second
			p.ServeHTTP(w, r)
			return
		}
		if p := g.bound(w, r); p != nil {
			p.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
