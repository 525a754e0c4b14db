package remote

import "context"

type aloneKey struct{}

// Alone returns a context for calls that are sent while nothing else is asked of
// the plugin: a request that ends the process then takes no other with it.
func Alone(ctx context.Context) context.Context { return context.WithValue(ctx, aloneKey{}, true) }

// IsAlone reports whether ctx is one of Alone.
func IsAlone(ctx context.Context) bool { return ctx.Value(aloneKey{}) != nil }
