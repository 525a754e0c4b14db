package answers

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/sdk"
)

// Source is what the caller needs of a run: *bus.Run has it.
type Source interface {
	ID() string
	KeepAnswer(ctx context.Context, key string, value []byte) (stands []byte, err error)
	Serve(subject string, f func(data []byte) []byte) (stop func(), err error)
	// Answers are those of the bucket behind a sequence, and then those that come, until ctx ends.
	Answers(ctx context.Context, after uint64) iter.Seq2[bus.Answer, error]
	// LastAnswer is the sequence of the last one now; 0: there is none.
	LastAnswer(ctx context.Context) (uint64, error)
}

// Server is the caller's side of a run's response cache.
type Server struct {
	local *cache.Cache
	run   Source
	log   *slog.Logger
	ctx   context.Context // ends with the Server
	end   func()
	stop  func()

	bringing sync.WaitGroup
	mu       sync.Mutex
	at       uint64        // the last answer that was brought
	more     chan struct{} // closed when at has changed, or nothing is brought any more
	failed   error         // why nothing is brought any more
}

// Serve answers what workers of a run ask for from the caller's response cache, and brings there what
// they keep, from where it was the last time that this folder was served. Close it.
func Serve(ctx context.Context, run Source, local *cache.Cache, log *slog.Logger) (*Server, error) {
	at, err := local.Copied(run.ID())
	if err != nil {
		return nil, fmt.Errorf("how many answers of the run are here already: %w", err)
	}
	s := &Server{local: local, run: run, log: log, at: at, more: make(chan struct{})}
	s.ctx, s.end = context.WithCancel(ctx)
	if s.stop, err = run.Serve(subject, s.reply); err != nil {
		s.end()
		return nil, err
	}
	s.bringing.Go(s.bring)
	return s, nil
}

// fromCaller is what a worker's folder has answers as that the caller had.
const fromCaller = "from the caller"

// reply answers a question.
func (s *Server) reply(data []byte) []byte {
	var reply []byte
	for _, key := range decodeQuestion(data) {
		value, ok := s.local.Get(key)
		if !ok {
			reply = appendReply(reply, nothing, nil)
			continue
		}
		encoded := answer{fromCaller, value}.encode()
		switch {
		case len(reply)+len(encoded) <= replyBytes:
			reply = appendReply(reply, found, encoded)
		case len(encoded) <= replyBytes:
			reply = appendReply(reply, later, nil)
		default:
			reply = appendReply(reply, s.handOver(key, encoded), nil)
		}
	}
	return reply
}

// handOver puts an answer that is too large for a reply into the run's bucket.
func (s *Server) handOver(key sdk.Key, encoded []byte) byte {
	ctx, cancel := context.WithTimeout(s.ctx, patience/2)
	defer cancel()
	if _, err := s.run.KeepAnswer(ctx, name(key), encoded); err != nil {
		return nothing
	}
	return kept
}
