package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeFailure converts an error into a failure. The end of a context counts as cancelled or out of
// time, even if the stage gave it no code.
func EncodeFailure(err error) *stagepb.Failure {
	f := &stagepb.Failure{Code: errorCodes[sdk.CodeOf(err)], Message: Valid(err.Error())}
	var coded *sdk.Error
	switch {
	case errors.As(err, &coded):
		after := (coded.RetryAfter + time.Millisecond - 1) / time.Millisecond
		f.RetryAfterMs = uint32(min(max(after, 0), math.MaxUint32))
	case errors.Is(err, context.Canceled):
		f.Code = stagepb.Code_CODE_CANCELLED
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = stagepb.Code_CODE_DEADLINE
	}
	return f
}

// DecodeFailure returns the error of a failure. An unknown code, from a newer plugin, counts as
// internal.
func DecodeFailure(f *stagepb.Failure) error {
	code, _ := key(errorCodes, f.GetCode())
	message := Cut(f.GetMessage())
	if message == "" {
		message = "the plugin gave no reason"
	}
	return &sdk.Error{
		Code: code, RetryAfter: time.Duration(f.GetRetryAfterMs()) * time.Millisecond, Err: errors.New(message),
	}
}

// EncodeRowErrors lists the rows that failed alone, in order.
func EncodeRowErrors(failed sdk.RowErrors) []*stagepb.RowError {
	var all []*stagepb.RowError
	for _, row := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, &stagepb.RowError{Row: uint32(row), Failure: EncodeFailure(failed[row])})
	}
	return all
}

// DecodeRowErrors returns the errors of single rows, out of n rows.
func DecodeRowErrors(all []*stagepb.RowError, n int) (sdk.RowErrors, error) {
	if len(all) == 0 {
		return nil, nil
	}
	failed := sdk.RowErrors{}
	for _, e := range all {
		if uint64(e.GetRow()) >= uint64(n) {
			return nil, fmt.Errorf("error for row %d of %d", e.GetRow(), n)
		}
		failed[int(e.Row)] = DecodeFailure(e.GetFailure())
	}
	return failed, nil
}

// EncodeArgumentErrors converts an error into the errors of a config; joined errors become single
// ones.
func EncodeArgumentErrors(err error) []*stagepb.ArgumentError {
	var all []*stagepb.ArgumentError
	for _, e := range sdk.ArgumentErrors(err) {
		all = append(all, &stagepb.ArgumentError{Argument: Valid(e.Argument), Path: ValidAll(e.Path), Message: Valid(e.Err.Error())})
	}
	return all
}

// DecodeArgumentErrors returns the errors of a config. An error without an argument concerns the
// whole stage.
func DecodeArgumentErrors(all []*stagepb.ArgumentError) []*sdk.ArgumentError {
	var errs []*sdk.ArgumentError
	for _, e := range all {
		errs = append(errs, &sdk.ArgumentError{Argument: e.GetArgument(), Path: e.GetPath(), Err: errors.New(Cut(e.GetMessage()))})
	}
	return errs
}

// EncodePending makes a message of results that come later.
func EncodePending(p *sdk.Pending) *stagepb.Pending {
	after := (p.PollAfter + time.Millisecond - 1) / time.Millisecond
	return &stagepb.Pending{Handle: Valid(p.Handle), PollAfterMs: uint32(min(max(after, 0), math.MaxUint32)), Note: Valid(p.Note)}
}

// DecodePending is the inverse of EncodePending.
func DecodePending(p *stagepb.Pending) (*sdk.Pending, error) {
	if n := len(p.GetHandle()); n == 0 || n > MaxHandle {
		return nil, fmt.Errorf("a handle of pending work has 1 to %d bytes, and this one %d", MaxHandle, n)
	}
	return &sdk.Pending{Handle: p.GetHandle(), PollAfter: time.Duration(p.GetPollAfterMs()) * time.Millisecond, Note: Cut(p.GetNote())}, nil
}

const (
	// ProtocolVersion is the version of sdk/proto that this package speaks.
	ProtocolVersion = 2
	// Minor counts the additions to that version.
	Minor = 1
	// LeastMinor is the oldest Minor of the engine that plugins of this SDK work with.
	LeastMinor = 0
	// CookieKey is the environment variable by which a plugin knows that racflow started it.
	CookieKey = "RACFLOW_PLUGIN"
	// CookieValue is the value that CookieKey must have.
	CookieValue = "b6c0ce8b-stage"
	// StageKey is the environment variable by which a program knows that it was started to run one of
	// its own stages. Its value is for people.
	StageKey = "RACFLOW_STAGE"
	// TokenKey is the metadata that carries the token of the service Host.
	TokenKey = "racflow-token"
)

const (
	// Window is the number of calls that a plugin gets at a time. As many items can wait for a
	// language model at the same time.
	Window = 256
	// MaxMessage is the size of the largest message in bytes, both ways.
	MaxMessage = 64 << 20
	// MaxHandle is the size of the largest handle of pending work in bytes.
	MaxHandle = 64 << 10

	flowWindow = 16 << 20 // bytes in flight: enough to send a large batch in one step
	buffer     = 256 << 10
)

// Handshake returns what host and plugin check of each other before the first call.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   CookieKey,
		MagicCookieValue: CookieValue,
	}
}

// ServerOptions returns the limits of a plugin's gRPC server, and the interceptors that read the
// trace of a call from its metadata.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(flowWindow), grpc.InitialConnWindowSize(flowWindow),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		grpc.ChainUnaryInterceptor(receiveUnary), grpc.ChainStreamInterceptor(receiveStream),
	}
}

// DialOptions returns the same limits for the host's end, and the interceptors that add the trace to
// the metadata.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(flowWindow), grpc.WithInitialConnWindowSize(flowWindow),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer),
		grpc.WithChainUnaryInterceptor(sendUnary), grpc.WithChainStreamInterceptor(sendStream),
		grpc.WithIdleTimeout(0), // a plugin that gets no call for half an hour has not ended
	}
}

// EncodeKeys converts keys into bytes.
func EncodeKeys(keys []sdk.Key) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = keys[i][:]
	}
	return all
}

// DecodeKey converts bytes into a key.
func DecodeKey(b []byte) (k sdk.Key, err error) {
	if len(b) != len(k) {
		return k, fmt.Errorf("a key of %d bytes; it has %d", len(b), len(k))
	}
	return sdk.Key(b), nil
}

// EncodeCached converts cached values into messages.
func EncodeCached(values [][]byte) []*stagepb.CachedValue {
	all := make([]*stagepb.CachedValue, len(values))
	for i, v := range values {
		all[i] = &stagepb.CachedValue{Known: v != nil, Value: v}
	}
	return all
}

// DecodeCached returns the n values in messages; unknown values are nil.
func DecodeCached(all []*stagepb.CachedValue, n int) ([][]byte, error) {
	if err := whole("values", len(all), n); err != nil {
		return nil, err
	}
	values := make([][]byte, n)
	for i, k := range all {
		if k.GetKnown() {
			values[i] = append([]byte{}, k.GetValue()...) // not nil
		}
	}
	return values, nil
}

// EncodeCall converts a call into a message.
func EncodeCall(c sdk.Call) *stagepb.Call {
	return &stagepb.Call{
		Endpoint: Valid(c.Endpoint), Tokens: uint32(min(max(c.Tokens, 0), 1<<31)),
		MostInputTokens: c.Most.InputTokens, MostOutputTokens: c.Most.OutputTokens, Batch: c.Batch, Alternative: c.Alternative,
	}
}

// DecodeCall returns the call in a message.
func DecodeCall(c *stagepb.Call) sdk.Call {
	return sdk.Call{
		Endpoint: c.GetEndpoint(), Tokens: int(c.GetTokens()),
		Most: sdk.Usage{InputTokens: c.GetMostInputTokens(), OutputTokens: c.GetMostOutputTokens()}, Batch: c.GetBatch(), Alternative: c.GetAlternative(),
	}
}

// EncodeResult converts a result into a message.
func EncodeResult(o sdk.Result) *stagepb.Result {
	after := (o.RetryAfter + time.Millisecond - 1) / time.Millisecond
	return &stagepb.Result{
		Status: stagepb.Status(o.Status), RetryAfterMs: uint32(min(max(after, 0), math.MaxUint32)),
		InputTokens: o.Usage.InputTokens, CachedTokens: o.Usage.CachedTokens, OutputTokens: o.Usage.OutputTokens,
		Reason: strings.ToValidUTF8(o.Reason, "?"), Lost: o.Lost,
	}
}

// DecodeResult returns the result in a message. An unknown status says nothing about the service.
func DecodeResult(d *stagepb.Result) sdk.Result {
	status := sdk.StatusLeft
	if s := d.GetStatus(); s >= stagepb.Status_STATUS_OK && s <= stagepb.Status_STATUS_DENIED {
		status = sdk.Status(s) // both have the same numbers
	}
	return sdk.Result{
		Status: status, RetryAfter: time.Duration(d.GetRetryAfterMs()) * time.Millisecond,
		Usage:  sdk.Usage{InputTokens: d.GetInputTokens(), CachedTokens: d.GetCachedTokens(), OutputTokens: d.GetOutputTokens()},
		Reason: d.GetReason(), Lost: d.GetLost(),
	}
}

// The metadata keys of a trace, in both directions: the names of W3C Trace Context.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// outgoing adds the trace of a context to the metadata of a call.
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
