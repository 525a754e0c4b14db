package bus

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// denials takes what servers refuse to whoever asked. A server tells of a refusal apart from any answer, and whoever asked would wait
// for one until its time is over.
type denials struct {
	log  *slog.Logger
	mu   sync.Mutex
	next int
	open map[int]*watched
}

type watched struct {
	subjects []string // a refusal of one of them, or of one below, ends it
	end      context.CancelCauseFunc
}

// watch ends the context with the refusal of any of these subjects.
func (d *denials) watch(ctx context.Context, subjects []string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[int]*watched{}
	}
	d.next++
	key := d.next
	d.open[key] = &watched{subjects, end}
	return ctx, func() {
		d.mu.Lock()
		delete(d.open, key)
		d.mu.Unlock()
		end(nil)
	}
}

func (d *denials) handle(_ *nats.Conn, _ *nats.Subscription, err error) {
	d.log.Warn("from the servers", "err", err)
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, rest, _ := strings.Cut(err.Error(), `"`)
	refused, _, _ := strings.Cut(rest, `"`)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.open {
		if strings.HasPrefix(refused, "_INBOX.") { // answers do not arrive at all
			w.end(err)
		}
		for _, subject := range w.subjects {
			if refused == subject || strings.HasPrefix(refused, subject+".") {
				w.end(err)
			}
		}
	}
}
