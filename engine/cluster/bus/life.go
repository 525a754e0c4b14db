package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

func (c *Conn) disconnected(_ *nats.Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return
	}
	if c.lose(); c.closing {
		return
	}
	c.back = make(chan struct{})
	c.log.Warn("the connection with the servers is lost", "err", err)
	c.waits.enter(fmt.Errorf("the connection with the servers is lost (%s)", c.servers))
}

func (c *Conn) reconnected(nc *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() == nil {
		return
	}
	c.life, c.lose = context.WithCancel(context.Background())
	close(c.back)
	c.log.Info("the connection with the servers is back", "server", nc.ConnectedUrlRedacted())
	c.waits.leave()
}

// closed is told when there will be no other connection: it was closed here, or the servers refuse this user now.
func (c *Conn) closed(*nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
	select {
	case <-c.back:
	default:
		close(c.back)
		c.waits.leave()
	}
}

// connected is a context that ends when the connection is lost: what was under way then did not arrive.
func (c *Conn) connected(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(errLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// awaitBack returns when there is a connection, or ctx ends.
func (c *Conn) awaitBack(ctx context.Context) {
	c.mu.Lock()
	back := c.back
	c.mu.Unlock()
	select {
	case <-back:
	case <-ctx.Done():
	}
}
