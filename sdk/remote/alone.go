package remote

import (
	"context"
	"sync/atomic"
)

type aloneKey struct{}

// Alone returns a context for calls that are sent while nothing else is asked of
// the plugin: a request that ends the process then takes no other with it.
func Alone(ctx context.Context) context.Context { return context.WithValue(ctx, aloneKey{}, true) }

// IsAlone reports whether ctx is one of Alone.
func IsAlone(ctx context.Context) bool { return ctx.Value(aloneKey{}) != nil }

type blamedKey struct{}

// Blamed returns a context for calls with a single row: it is blamed where they end the
// process. One that had answered other calls may have ended for these, such as one
// that ends after every hundred, so that the call is made once more.
func Blamed(ctx context.Context) context.Context { return context.WithValue(ctx, blamedKey{}, true) }

// IsBlamed reports whether ctx is one of Blamed.
func IsBlamed(ctx context.Context) bool { return ctx.Value(blamedKey{}) != nil }

type turnKey struct{}

// Turn says whether a call still waits to be sent: for its turn, or for a process.
type Turn struct{ waits atomic.Bool }

// Waits reports whether it does.
func (t *Turn) Waits() bool { return t.waits.Load() }

// WithTurn returns a context for one call that notes in the Turn whether it is sent.
func WithTurn(ctx context.Context) (context.Context, *Turn) {
	t := &Turn{}
	return context.WithValue(ctx, turnKey{}, t), t
}

// Await notes that the call of a context waits, or that it is sent.
func Await(ctx context.Context, waits bool) {
	if t, ok := ctx.Value(turnKey{}).(*Turn); ok {
		t.waits.Store(waits)
	}
}
