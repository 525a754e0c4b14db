package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/mod/semver"

	"github.com/racflow/racflow/sdk/support"
)

// Options describe how to reach the servers.
type Options struct {
	Servers              string            // "nats://a:4222,b,c", or tls://...; user and password of the first apply to all
	Name                 string            // unique name of this process: "host-1234-k3v9q2"
	Credentials          string            // file: .creds (JWT and key) or a seed (NKEY); empty: none
	CA, Certificate, Key string            // PEM files for TLS; empty: the system's authorities, no certificate
	Log                  *slog.Logger      // nil: no logging
	Dial                 nats.CustomDialer // nil: over the network
	Waiting              func(why error)   // gets the reason when calls begin to wait for the servers, and nil when the wait ends. It must return soon and not use the Conn. May be nil
}

const (
	dialTimeout    = 5 * time.Second
	pingInterval   = 5 * time.Second // a server that misses two pings counts as lost
	reconnectWait  = 500 * time.Millisecond
	oldestVersion  = "2.10.0" // consumers with filters in their subjects, subjects in a stream's info
	connectTimeout = 10 * time.Second
	sayAfter       = 2 * time.Second // until a slow first connection is reported
)

// servers parses a list of servers; the scheme and user of the first apply to all.
func servers(list string) ([]*url.URL, error) {
	var urls []*url.URL
	for each := range strings.SplitSeq(list, ",") {
		each = strings.TrimSpace(each)
		if each == "" {
			continue
		}
		scheme := "nats"
		if len(urls) > 0 {
			scheme = urls[0].Scheme
		}
		if !strings.Contains(each, "://") {
			each = scheme + "://" + each
		}
		u, err := url.Parse(each)
		if err != nil || u.Hostname() == "" {
			return nil, errors.New("the list of servers cannot be read: write nats:// or tls:// and HOST:PORT,HOST") // err may contain a password
		}
		if u.Scheme != "nats" && u.Scheme != "tls" {
			return nil, fmt.Errorf("server %s: write nats://%s or tls://%s", u.Host, u.Host, u.Host)
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), "4222")
		}
		if u.User == nil && len(urls) > 0 {
			u.User = urls[0].User
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		return nil, errors.New("no servers are named: write nats:// or tls:// and HOST:PORT,HOST")
	}
	return urls, nil
}

func hosts(urls []*url.URL) string {
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(names, ", ")
}

// dialOptions returns the options of nats.go except the handlers.
func (o Options) dialOptions() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(dialTimeout), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.ReconnectBufSize(-1), // a message that cannot be sent fails; its sender decides whether to send it again
	}
	if o.Dial != nil {
		options = append(options, nats.SetCustomDialer(o.Dial))
	}
	if o.CA != "" {
		options = append(options, nats.RootCAs(o.CA))
	}
	switch {
	case o.Certificate != "" && o.Key != "":
		options = append(options, nats.ClientCert(o.Certificate, o.Key))
	case o.Certificate != "" || o.Key != "":
		return nil, errors.New("a certificate for TLS and its key belong together: name both files")
	}
	if o.Credentials == "" {
		return options, nil
	}
	data, err := os.ReadFile(o.Credentials)
	if err != nil {
		return nil, fmt.Errorf("credentials for the servers: %w", err)
	}
	if strings.Contains(string(data), "NATS USER JWT") {
		return append(options, nats.UserCredentials(o.Credentials)), nil
	}
	seed, err := nats.NkeyOptionFromSeed(o.Credentials)
	if err != nil {
		return nil, fmt.Errorf("credentials for the servers: %s is neither a .creds file nor the seed of a user's key: %w", o.Credentials, err)
	}
	return append(options, seed), nil
}

// Conn is a connection to the servers. It reconnects until it is closed.
type Conn struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	name     string
	log      *slog.Logger
	waits    *waits
	servers  string        // for people
	timeout  time.Duration // of one attempt
	handles  sync.Map      // of streams, buckets and queues, by name
	underWay sync.Map      // how to end the attempts under way: keys are *context.CancelCauseFunc
}

// Connect connects to the servers and checks that they support streams. If servers are unreachable or have streams disabled, it
// retries for ten seconds, or until ctx ends. Lasting problems, such as a wrong certificate or account, are errors at once.
func Connect(ctx context.Context, o Options) (_ *Conn, err error) {
	urls, err := servers(o.Servers)
	if err != nil {
		return nil, err
	}
	options, err := o.dialOptions()
	if err != nil {
		return nil, err
	}
	c := &Conn{name: o.Name, log: o.Log, waits: &waits{notify: o.Waiting}, servers: hosts(urls), timeout: attemptTimeout}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	options = append(options, func(n *nats.Options) error {
		for _, u := range urls {
			n.Servers = append(n.Servers, u.String())
		}
		return nil
	}, nats.DisconnectErrHandler(c.disconnected), nats.ReconnectHandler(c.reconnected), nats.ErrorHandler(c.failed),
		nats.ClosedHandler(func(*nats.Conn) { c.interrupt(errLost) }))
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	slow := time.AfterFunc(sayAfter, func() {
		c.waits.enter(fmt.Errorf("%s: cannot be used yet; tried for some seconds more", c.servers))
	})
	defer func() {
		if said := !slow.Stop(); said && err == nil {
			c.waits.leave()
		}
	}()
	for {
		c.nc, err = nats.Connect("", options...)
		if err == nil || !unreachable(err) || support.SleepFor(ctx, reconnectWait) != nil {
			break
		}
	}
	if err != nil {
		return nil, c.advise(err)
	}
	if err = c.check(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// check finds problems early that would otherwise cause unclear errors later.
func (c *Conn) check(ctx context.Context) (err error) {
	version, _, _ := strings.Cut(c.nc.ConnectedServerVersion(), "-")
	if semver.Compare("v"+version, "v"+oldestVersion) < 0 {
		return fmt.Errorf("server %s is nats-server %s: racflow needs %s or later; install a newer one", c.nc.ConnectedUrlRedacted(), version, oldestVersion)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		return err
	}
	for {
		err = c.attempt(ctx, c.timeout, func(ctx context.Context) error {
			_, err := c.js.AccountInfo(ctx)
			return err
		})
		off := isAny(err, jetstream.ErrJetStreamNotEnabled, nats.ErrNoResponders)
		if err == nil || !off && !errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) && passes(err) {
			return nil // streams are enabled but not available just now: later calls wait for them
		}
		if !off || support.SleepFor(ctx, reconnectWait) != nil {
			return c.advise(err)
		}
	}
}

// Name returns the name of this process for other processes.
func (c *Conn) Name() string { return c.name }

// Close ends the connection and all calls that wait for it.
func (c *Conn) Close() { c.nc.Close() }

func (c *Conn) disconnected(nc *nats.Conn, err error) {
	if !nc.IsClosed() {
		c.log.Warn("the connection with the servers is lost", "err", err)
	}
	c.interrupt(errLost)
}

func (c *Conn) reconnected(nc *nats.Conn) {
	c.log.Info("the connection with the servers is back", "server", nc.ConnectedUrlRedacted())
}

// failed hears of what the servers report without a request.
func (c *Conn) failed(_ *nats.Conn, _ *nats.Subscription, err error) {
	c.log.Warn("from the servers", "err", err)
	if errors.Is(err, nats.ErrPermissionViolation) {
		c.interrupt(err)
	}
}
