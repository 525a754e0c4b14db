package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

var (
	// ErrLost says that the stream broke before the reply came. The plugin may
	// or may not have done what it was asked.
	ErrLost = errors.New("the plugin's process ended")
	// ErrUnsent says that the stream broke before the request was sent.
	ErrUnsent = errors.New("the plugin's process ended before the request was sent")
)

// Session is one Run stream of a configured plugin. At most wire.Window
// requests are unanswered at a time; further calls wait their turn.
type Session struct {
	stop     context.CancelFunc
	credits  *semaphore.Weighted
	out      chan *stagepb.Request
	done     chan struct{} // closed when the stream has broken
	answered atomic.Int64
	desk     desk

	mu      sync.Mutex
	seq     uint64
	pending map[uint64]*pending
	err     error
}

// pending is a request without a reply. It keeps its credits until the reply
// comes, even where nobody waits for it any longer.
type pending struct {
	reply   chan *stagepb.Reply
	credits int64
	left    bool
}

// Open starts the Run stream. The session ends when ctx does, when the plugin
// ends or with Close. What the plugin asks of the engine goes to host; nil: it
// gets errors.
func Open(ctx context.Context, client stagepb.StageClient, host sdk.Host) (*Session, error) {
	ctx, stop := context.WithCancel(ctx)
	stream, err := client.Run(ctx)
	if err != nil {
		stop()
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	s := &Session{
		stop: stop, credits: semaphore.NewWeighted(wire.Window),
		out: make(chan *stagepb.Request, wire.Window), done: make(chan struct{}), pending: map[uint64]*pending{},
	}
	s.desk = desk{host: host, ctx: ctx, send: s.post, calls: map[uint64]*call{}}
	go s.send(stream)
	go s.receive(stream)
	return s, nil
}

// Close ends the session and every call on it.
func (s *Session) Close() { s.stop() }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is why the session has ended, or nil while it lives.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Answered is how many replies the plugin has sent.
func (s *Session) Answered() int { return int(s.answered.Load()) }

// Stuck reports whether every credit is held by requests that were cancelled
// or ran out of time without a reply: nothing can be asked any longer.
func (s *Session) Stuck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := int64(0)
	for _, p := range s.pending {
		if p.left {
			held += p.credits
		}
	}
	return held >= wire.Window
}

// Settle waits until the requests that nobody waits for any longer have been
// answered, or the session has ended. It returns false where ctx ends first: the
// plugin then still works on one of them.
func (s *Session) Settle(ctx context.Context) bool {
	s.mu.Lock()
	var left []*pending
	for _, p := range s.pending {
		if p.left {
			left = append(left, p)
		}
	}
	s.mu.Unlock()
	for _, p := range left {
		select {
		case <-p.reply:
		case <-s.done:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Call sends a request and waits for its reply. The deadline of ctx travels
// with it; when ctx ends first, the request is cancelled and the call returns
// at once. Call sets the sequence number and the budget in a message of its
// own; req is only read. Where ctx is one of Alone, the call waits until nothing
// else is asked of the plugin.
func (s *Session) Call(ctx context.Context, req *stagepb.Request) (*stagepb.Reply, error) {
	credits := int64(1)
	if IsAlone(ctx) {
		credits = wire.Window
	}
	msg := &stagepb.Request{Attempt: req.GetAttempt(), Body: req.GetBody()}
	if size := proto.Size(msg); size > wire.MaxMessage-64 {
		return nil, sdk.Invalid(fmt.Errorf("the request has %d MiB, more than the %d of a message; use smaller batches", size>>20, wire.MaxMessage>>20))
	}
	if err := s.acquire(ctx, credits); err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		// Rounded up: a plugin that gives up first would say less of why.
		msg.BudgetMs = uint32(min(max(time.Until(deadline).Milliseconds(), 0)+1, 1<<31))
	}
	p := &pending{reply: make(chan *stagepb.Reply, 1), credits: credits}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, ErrUnsent
	}
	s.seq++
	msg.Seq = s.seq
	s.pending[msg.Seq] = p
	s.mu.Unlock()

	select {
	case s.out <- msg:
	case <-s.done:
		return nil, ErrUnsent
	case <-ctx.Done():
		s.take(msg.Seq)
		s.credits.Release(credits)
		return nil, Ended(ctx)
	}
	select {
	case reply := <-p.reply:
		return reply, nil
	case <-s.done:
		select {
		case reply := <-p.reply: // it came just before the end
			return reply, nil
		default:
			return nil, ErrLost
		}
	case <-ctx.Done():
		s.leave(msg.Seq)
		return nil, Ended(ctx)
	}
}

// acquire waits for credits, for the end of ctx or for that of the session.
func (s *Session) acquire(ctx context.Context, credits int64) error {
	if s.credits.TryAcquire(credits) {
		return nil
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.done:
			stop()
		case <-waiting.Done():
		}
	}()
	switch err := s.credits.Acquire(waiting, credits); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Ended(ctx)
	default:
		return ErrUnsent
	}
}

// leave gives up waiting for a reply and tells the plugin so.
func (s *Session) leave(seq uint64) {
	s.mu.Lock()
	p, waiting := s.pending[seq]
	if waiting {
		p.left = true
	}
	s.mu.Unlock()
	if !waiting {
		return
	}
	// Nobody can wait here: a plugin that has stopped reading fills the queue.
	go s.post(&stagepb.Request{Body: &stagepb.Request_Cancel{Cancel: &stagepb.Cancel{Seq: seq}}})
}

// post queues a message that has no reply.
func (s *Session) post(msg *stagepb.Request) {
	select {
	case s.out <- msg:
	case <-s.done:
	}
}

func (s *Session) take(seq uint64) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[seq]
	delete(s.pending, seq)
	return p
}

func (s *Session) send(stream stagepb.Stage_RunClient) {
	for {
		select {
		case req := <-s.out:
			if err := stream.Send(req); err != nil {
				return // receive gets the cause
			}
		case <-s.done:
			return
		}
	}
}

func (s *Session) receive(stream stagepb.Stage_RunClient) {
	for {
		reply, err := stream.Recv()
		if err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			close(s.done)
			s.stop()
			s.desk.close()
			return
		}
		if req := reply.GetHost(); req != nil {
			s.desk.handle(req)
			continue
		}
		// A reply that nothing waits for answers a request that was never
		// sent; there is nobody to tell.
		if p := s.take(reply.GetSeq()); p != nil {
			s.answered.Add(1)
			p.reply <- reply
			close(p.reply) // several may wait in Settle
			s.credits.Release(p.credits)
		}
	}
}

// Ended is the error of a call whose context ended: cancelled or out of time.
func Ended(ctx context.Context) error {
	code := sdk.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sdk.CodeDeadline
	}
	return &sdk.Error{Code: code, Err: context.Cause(ctx)}
}
