package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Run implements the service: one goroutine per request, one reply each.
func (s *Server) Run(stream stagepb.Stage_RunServer) error {
	stage, err := s.configured()
	if err != nil {
		return err
	}
	// When the stream breaks, its context ends all that is worked on.
	r := &run{stream: stream, active: map[uint64]context.CancelFunc{}}
	var calls sync.WaitGroup
	defer calls.Wait()
	defer s.host.attach(r)()
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c := req.GetCancel(); c != nil {
			r.cancel(c.GetSeq())
			continue
		}
		if h := req.GetHost(); h != nil {
			s.host.receive(h)
			continue
		}
		ctx, err := r.begin(req)
		if err != nil {
			r.send(&stagepb.Reply{Seq: req.GetSeq(), Failure: wire.EncodeFailure(sdk.Invalid(err))})
			continue
		}
		if err := s.enter(); err != nil {
			r.end(req.GetSeq())
			return err
		}
		calls.Go(func() {
			defer s.calls.Done()
			reply := s.answer(ctx, stage, req)
			r.end(req.GetSeq())
			r.send(reply)
		})
	}
}

// run is one stream.
type run struct {
	stream  stagepb.Stage_RunServer
	sending sync.Mutex
	mu      sync.Mutex
	active  map[uint64]context.CancelFunc
}

func (r *run) begin(req *stagepb.Request) (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.active) >= wire.Window {
		return nil, fmt.Errorf("more than %d requests at a time", wire.Window)
	}
	if _, ok := r.active[req.GetSeq()]; ok {
		return nil, fmt.Errorf("request %d is already being worked on", req.GetSeq())
	}
	var ctx context.Context
	var cancel context.CancelFunc
	if ms := req.GetBudgetMs(); ms > 0 {
		ctx, cancel = context.WithTimeout(r.stream.Context(), time.Duration(ms)*time.Millisecond)
	} else {
		ctx, cancel = context.WithCancel(r.stream.Context())
	}
	r.active[req.GetSeq()] = cancel
	return ctx, nil
}

func (r *run) cancel(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel, ok := r.active[seq]; ok {
		cancel()
	}
}

// end frees the request's place before its reply is sent, so that a host that
// keeps to the window never finds it full.
func (r *run) end(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[seq]()
	delete(r.active, seq)
}

func (r *run) send(reply *stagepb.Reply) {
	if size := proto.Size(reply); size > wire.MaxMessage {
		err := fmt.Errorf("the reply has %d MiB, more than the %d of a message; use smaller batches", size>>20, wire.MaxMessage>>20)
		reply = &stagepb.Reply{Seq: reply.Seq, Failure: wire.EncodeFailure(sdk.Invalid(err))}
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	_ = r.stream.Send(reply) // it fails only where the stream has ended, which Recv reports
}

// answer works on one request. Whatever happens, there is a reply.
func (s *Server) answer(ctx context.Context, stage any, req *stagepb.Request) *stagepb.Reply {
	reply := &stagepb.Reply{}
	err := s.guard(fmt.Sprintf("%T", req.GetBody()), func() error { return handle(ctx, stage, req, reply) })
	var failed sdk.RowErrors
	switch {
	case err == nil:
	case errors.As(err, &failed):
		reply.Errors = wire.EncodeRowErrors(failed)
	default:
		reply = &stagepb.Reply{Failure: wire.EncodeFailure(err)}
	}
	reply.Seq = req.GetSeq()
	return reply
}
