package serve

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// work calls do with the stage as the interface T, and puts what goes wrong into the
// reply: whatever happens, there is one. Its error is that of a call at the wrong time.
func work[T any](ctx context.Context, s *Server, what string, reply proto.Message, do func(T) error) error {
	stage, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t, ok := stage.(T)
	if !ok {
		setFailure(reply, sdk.Invalid(errNotOffered))
		return nil
	}
	if err := s.guard(what, func() error { return do(t) }); err != nil {
		setFailure(reply, err)
	} else if size := proto.Size(reply); size > wire.MaxMessage {
		setFailure(reply, sdk.Invalid(fmt.Errorf("the reply has %d MiB, more than the %d of a message; use smaller batches", size>>20, wire.MaxMessage>>20)))
	}
	return nil
}

var errNotOffered = errors.New("a stage of this kind does not do that")

// setFailure makes a reply one that failed as a whole.
func setFailure(reply proto.Message, err error) {
	proto.Reset(reply)
	m := reply.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName("failure"), protoreflect.ValueOfMessage(wire.EncodeFailure(err).ProtoReflect()))
}

// enter returns the stage for a call, which has ended when leave is called. A server that is
// being closed takes no more: what Close waits for must not grow.
func (s *Server) enter(ctx context.Context) (stage any, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, status.Error(codes.Unavailable, "the plugin is being closed")
	case s.stage == nil:
		return nil, nil, status.Error(codes.FailedPrecondition, "Configure comes before all work")
	}
	s.calls.Add(1)
	id := new(byte)
	s.active[id] = ctx
	return s.stage, func() {
		s.mu.Lock()
		delete(s.active, id)
		s.mu.Unlock()
		s.calls.Done()
	}, nil
}

// Alive implements the service.
func (s *Server) Alive(context.Context, *stagepb.AliveRequest) (*stagepb.AliveReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := &stagepb.AliveReply{}
	for _, ctx := range s.active {
		if ctx.Err() != nil {
			reply.Overdue++
		}
	}
	return reply, nil
}

// batch decodes a batch, calls the stage and encodes one result per row.
func batch[T any](ctx context.Context, rows *stagepb.Rows, reply *stagepb.RowsReply,
	call func(context.Context, sdk.Batch) ([]T, error), encode func([]T) *stagepb.Rows) error {
	b, err := wire.DecodeBatch(rows)
	if err != nil {
		return sdk.Invalid(err)
	}
	results, err := call(ctx, b)
	return fill(reply, len(b.Items), results, err, infallible(encode))
}

// fill puts the results of n rows into the reply, or that they come later, with the errors
// of single rows. There must be a result for each row, failed ones too.
func fill[T any](reply *stagepb.RowsReply, n int, results []T, err error, encode func([]T) (*stagepb.Rows, error)) error {
	var failed sdk.RowErrors
	var later *sdk.Pending
	switch {
	case err == nil:
	case errors.As(err, &later):
		reply.Pending = wire.EncodePending(later)
		return nil
	case !errors.As(err, &failed):
		return err
	}
	if results == nil && failed != nil {
		results = make([]T, n) // every row failed, or the others have nothing
	}
	if len(results) != n {
		return fmt.Errorf("the stage returned %d results for %d rows", len(results), n)
	}
	for row := range failed {
		if row < 0 || row >= n {
			return fmt.Errorf("the stage returned an error for row %d of %d", row, n)
		}
	}
	reply.Rows, err = encode(results)
	reply.Errors = wire.EncodeRowErrors(failed)
	return err
}

func infallible[T any](encode func([]T) *stagepb.Rows) func([]T) (*stagepb.Rows, error) {
	return func(results []T) (*stagepb.Rows, error) { return encode(results), nil }
}
