package wire

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/racflow/racflow/sdk"
)

// The metadata by which a trace is passed on, both ways: the names of W3C Trace Context.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// outgoing adds the trace of a context to what is sent with a call.
func outgoing(ctx context.Context) context.Context {
	t := sdk.TraceOf(ctx)
	if t.Parent == "" {
		return ctx
	}
	if ctx = metadata.AppendToOutgoingContext(ctx, traceParent, t.Parent); t.State != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, traceState, t.State)
	}
	return ctx
}

// incoming returns the context of a call with the trace that came with it.
func incoming(ctx context.Context) context.Context {
	parent, state := metadata.ValueFromIncomingContext(ctx, traceParent), metadata.ValueFromIncomingContext(ctx, traceState)
	if len(parent) != 1 {
		return ctx
	}
	t := sdk.Trace{Parent: parent[0]}
	if len(state) == 1 {
		t.State = state[0]
	}
	return sdk.WithTrace(ctx, t)
}

func sendUnary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	return invoke(outgoing(ctx), method, req, reply, conn, o...)
}

func sendStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, stream grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	return stream(outgoing(ctx), desc, conn, method, o...)
}

func receiveUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	return handle(incoming(ctx), req)
}

func receiveStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, tracedStream{stream, incoming(stream.Context())})
}

// tracedStream is a stream whose context has a trace.
type tracedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream has its own
}

// Context implements grpc.ServerStream.
func (s tracedStream) Context() context.Context { return s.ctx }
