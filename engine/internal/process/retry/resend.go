package retry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

const (
	// attempts for one request that ends its process; all but the first send it alone.
	attempts = 3
	// maxWorn is how often a single row is sent alone again, until it ends a process that had answered
	// nothing else.
	maxWorn = 5
)

// LostError is the error of a request whose process ended before it answered. A stage's caller gets
// this error only after Resend has sent the request again, or sent it alone.
type LostError struct {
	By, Why  string // the stage with its plugin, and how the process ended
	Innocent bool   // another request is to blame
	Worn     bool   // the process had answered other requests, or worked on them
	Silent   bool   // the process gave no sign of life
	times    int
}

func (e *LostError) Error() string {
	how := "again"
	if e.times > 1 {
		how = fmt.Sprintf("%d times", e.times)
	}
	return fmt.Sprintf("%s: %v while it worked on this, %s: %s", e.By, sdk.ErrCrashed, how, e.Why)
}

func (e *LostError) Unwrap() error { return sdk.ErrCrashed }

// Resend calls send once a process runs; send sends a request to that process, and calls sent when
// the process works on it. If the process ends before it answers (LostError), Resend sends the
// request alone to the next process, so that a request that ends the process fails no other request.
// It does so once if the request was to be sent alone from the start: such a request is part of a
// batch that has already ended a process. of names the stage in an error of Bounded; empty: it has no
// name.
func Resend(ctx context.Context, of string, send func(ctx context.Context, sent func()) error) error {
	most := attempts
	if wire.IsAlone(ctx) {
		most = 1
	}
	t, bounded := ctx.Value(turnKey{}).(*turn)
	if !bounded {
		t = new(turn)
	}
	for times := 0; ; {
		t.begin(of)
		err := send(ctx, t.sent)
		lost := new(LostError)
		switch {
		case errors.Is(err, wire.ErrUnsent):
			continue
		case !errors.As(err, &lost):
			return err
		case lost.Innocent:
			continue
		}
		if times++; times >= most {
			lost.times = times
			return &sdk.Error{Code: sdk.CodeInternal, Err: lost}
		}
		ctx = wire.Alone(ctx)
	}
}

type turnKey struct{}

// turn measures how long the requests of a call of Bounded wait before they are sent: for their turn,
// or for a process.
type turn struct {
	mu     sync.Mutex
	since  time.Time // when the present wait began; zero: no request waits
	waited time.Duration
	of     string // stage of the last request
}

func (t *turn) begin(of string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of = of; t.since.IsZero() {
		t.since = time.Now()
	}
}

func (t *turn) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.since.IsZero() {
		t.waited, t.since = t.waited+time.Since(t.since), time.Time{}
	}
}

// result returns how long requests have waited so far, and the stage of the last one.
func (t *turn) result() (waited time.Duration, of string) {
	t.sent()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waited, t.of
}
