package bus

import (
	"context"
	"fmt"
	"time"
)

// Backlog is what lies in the queue of a run.
type Backlog struct {
	Waiting  int       // batches that nobody has
	UnderWay int       // batches that somebody has, or had and gave no sign of life for: they wait for another soon
	Oldest   time.Time // when the first of both was published; zero: there are none
	Now      time.Time // by the same clock, the servers'
}

// Backlog says what lies in the queue now.
func (r *Run) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	stream := itemsStream(r.id)
	err := r.c.patient(ctx, operation{stream: stream, uses: []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.CONSUMER.INFO." + stream}, do: func(ctx context.Context, _ bool) error {
		s, err := r.c.stream(ctx, stream)
		if err != nil {
			return err
		}
		queue, err := s.Consumer(ctx, consumer)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		waiting := queue.CachedInfo()
		// A consumer counts what is new in its stream a moment later; what is in the stream and was not handed out waits.
		b = Backlog{Waiting: max(0, int(info.State.Msgs)-waiting.NumAckPending), UnderWay: waiting.NumAckPending, Now: info.TimeStamp} //nolint:gosec // fewer than 2^63
		if info.State.Msgs > 0 {
			b.Oldest = info.State.FirstTime
		}
		return nil
	}})
	if err != nil {
		return Backlog{}, fmt.Errorf("the queue of run %s: %w", r.id, err)
	}
	return b, nil
}
