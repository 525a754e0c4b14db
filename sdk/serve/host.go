package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// host is the engine as the stage sees it: its calls go out between the
// replies of the Run stream, and the answers come in between the requests.
type host struct {
	mu      sync.Mutex
	stream  *run // nil: there is none, or none any more
	id      uint64
	pending map[uint64]chan *stagepb.HostReply
}

var _ sdk.Host = (*host)(nil)

var errNoStream = errors.New("the engine can be asked only while the stage works on a batch")

// attach lets calls go out on a stream, and ends those that wait when the
// stream does: the context of their batch has ended as well.
func (h *host) attach(r *run) (detach func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stream, h.pending = r, map[uint64]chan *stagepb.HostReply{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stream = nil
	}
}

// receive hands an answer to the call that waits for it.
func (h *host) receive(reply *stagepb.HostReply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.pending[reply.GetId()]; c != nil {
		delete(h.pending, reply.GetId())
		c <- reply // it has room
	}
}

// ask sends a request and waits for its answer. Where ctx ends first, a
// question that is still open can be withdrawn by its id.
func (h *host) ask(ctx context.Context, req *stagepb.HostRequest) (*stagepb.HostReply, error) {
	answer := make(chan *stagepb.HostReply, 1)
	h.mu.Lock()
	stream := h.stream
	if stream == nil {
		h.mu.Unlock()
		return nil, errNoStream
	}
	h.id++
	req.Id = h.id
	h.pending[req.Id] = answer
	h.mu.Unlock()
	stream.send(&stagepb.Reply{Host: req})
	select {
	case reply := <-answer:
		if f := reply.GetFailure(); f != nil {
			return nil, wire.DecodeFailure(f)
		}
		return reply, nil
	case <-ctx.Done():
	case <-stream.stream.Context().Done():
		return nil, stream.stream.Context().Err()
	}
	h.mu.Lock()
	delete(h.pending, req.Id)
	h.mu.Unlock()
	return nil, ctx.Err()
}

// CacheGet implements sdk.Host.
func (h *host) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	reply, err := h.ask(ctx, &stagepb.HostRequest{Body: &stagepb.HostRequest_Recall{Recall: &stagepb.Recall{Keys: wire.EncodeKeys(keys)}}})
	if err != nil {
		return nil, err
	}
	return wire.DecodeCached(reply.GetKept(), len(keys))
}

// CachePut implements sdk.Host.
func (h *host) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if len(value) > sdk.MaxCached {
		return sdk.Invalid(fmt.Errorf("a value of %d MiB, more than the %d that are kept", len(value)>>20, sdk.MaxCached>>20))
	}
	_, err := h.ask(ctx, &stagepb.HostRequest{Body: &stagepb.HostRequest_Keep{Keep: &stagepb.Keep{Key: key[:], Value: value}}})
	return err
}

// Acquire implements sdk.Host.
func (h *host) Acquire(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	req := &stagepb.HostRequest{Body: &stagepb.HostRequest_Admit{Admit: &stagepb.Admit{
		Endpoint: wire.Valid(call.Endpoint), Tokens: uint32(min(max(call.Tokens, 0), 1<<31)),
		MostInputTokens: call.Most.InputTokens, MostOutputTokens: call.Most.OutputTokens,
	}}}
	_, err := h.ask(ctx, req)
	var once sync.Once
	release := func(o sdk.Result) {
		once.Do(func() {
			h.tell(&stagepb.HostRequest{Id: req.GetId(), Body: &stagepb.HostRequest_Done{Done: wire.EncodeResult(o)}})
		})
	}
	if err == nil {
		return release, nil
	}
	if ctx.Err() != nil { // it may be admitted at this very moment
		release(sdk.Result{Status: sdk.StatusLeft})
	}
	return nil, err
}

// tell sends a request that has no answer.
func (h *host) tell(req *stagepb.HostRequest) {
	h.mu.Lock()
	stream := h.stream
	h.mu.Unlock()
	if stream != nil {
		stream.send(&stagepb.Reply{Host: req})
	}
}
