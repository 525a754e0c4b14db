package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// Conn is a connection with the servers. It re-establishes itself until it is closed.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	name    string
	log     *slog.Logger
	waits   *waits
	denied  denials
	servers string        // for people
	timeout time.Duration // of an attempt
	streams sync.Map      // handles by name

	mu      sync.Mutex
	life    context.Context    // of this connection: ends when it is lost; another once it is back
	lose    context.CancelFunc // ends it
	back    chan struct{}      // closed while there is a connection, or will never be one again
	closing bool
}

// Connect reaches the servers and checks that they keep streams. Servers that are not reachable, or whose streams are off, are
// tried for ten seconds, or until ctx ends; what does not pass by itself, as a wrong certificate or account, is an error at once.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	urls, err := servers(o.Servers)
	if err != nil {
		return nil, err
	}
	options, err := o.dialOptions()
	if err != nil {
		return nil, err
	}
	c := &Conn{name: o.Name, log: o.Log, waits: &waits{tell: o.Waiting}, servers: hosts(urls), back: make(chan struct{}), timeout: attemptTimeout}
	c.life, c.lose = context.WithCancel(context.Background())
	close(c.back)
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.denied.log = c.log
	options = append(options, func(n *nats.Options) error {
		for _, u := range urls {
			n.Servers = append(n.Servers, u.String())
		}
		return nil
	}, nats.DisconnectErrHandler(c.disconnected), nats.ReconnectHandler(c.reconnected), nats.ClosedHandler(c.closed), nats.ErrorHandler(c.denied.handle))
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	slow := time.AfterFunc(sayAfter, func() {
		c.waits.enter(fmt.Errorf("%s: cannot be used yet; tried for some seconds more", c.servers))
	})
	for {
		c.nc, err = nats.Connect("", options...)
		if err == nil || !unreachable(err) || support.SleepFor(ctx, reconnectWait) != nil {
			break
		}
	}
	if err == nil {
		if err = c.check(ctx); err != nil {
			c.Close()
		}
	} else {
		err = c.advise(err)
	}
	if said := !slow.Stop(); err != nil {
		return nil, err
	} else if said {
		c.waits.leave()
	}
	return c, nil
}

// check asks what would otherwise come out late and in the words of somebody else.
func (c *Conn) check(ctx context.Context) (err error) {
	if version := c.nc.ConnectedServerVersion(); older(version, oldestVersion) {
		return fmt.Errorf("server %s is nats-server %s: racflow needs %s or later; install a newer one", c.nc.ConnectedUrlRedacted(), version, oldestVersion)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		return err
	}
	for {
		err = c.attempt(ctx, 0, []string{"$JS.API.INFO"}, func(ctx context.Context) error {
			_, err := c.js.AccountInfo(ctx)
			return err
		})
		off := errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders)
		if !off && !errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) && passes(err) || err == nil {
			return nil // streams are on and cannot be asked just now: whoever asks them waits
		}
		if !off || support.SleepFor(ctx, reconnectWait) != nil {
			return c.advise(err)
		}
	}
}

// Name of this process, as other processes see it.
func (c *Conn) Name() string { return c.name }

// Close ends the connection, and whatever waits for it.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.nc.Close()
}
