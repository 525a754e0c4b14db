package sdk

import "context"

// Trace names the operation that a call is part of, as the headers of W3C Trace Context do
// (https://www.w3.org/TR/trace-context/).
type Trace struct {
	Parent string // of the header traceparent; empty: nobody traces
	State  string // of the header tracestate; empty: none
}

type traceKey struct{}

// Between processes a trace travels as the metadata of that name, with each call of a stage
// and with what a stage asks the engine for.

// WithTrace returns a context whose calls are part of a trace. The engine gives stages
// such contexts, and a stage that calls a service passes the headers on.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace that a call is part of; the zero Trace: none.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
