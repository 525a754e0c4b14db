package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/mod/semver"

	"github.com/racflow/racflow/sdk/support"
)

// Errors that callers distinguish.
var (
	ErrNoRun    = errors.New("no such run at the servers")
	ErrExists   = errors.New("a run of this ID is at the servers already")
	ErrRevision = errors.New("another process wrote this key meanwhile")
	ErrNobody   = errors.New("nobody serves this")
	ErrNoFile   = errors.New("no such file at the servers")
)

// JetStream error codes that nats.go does not name (errors.json of nats-server).
const (
	codeUnavailable  jetstream.ErrorCode = 10008 // the cluster has no leader that manages all streams
	codeNotLeader    jetstream.ErrorCode = 10009
	codeResources    jetstream.ErrorCode = 10002 // of the account
	codeNoPeers      jetstream.ErrorCode = 10005 // fewer servers than replicas
	codeStore        jetstream.ErrorCode = 10077 // could not be stored
	codeUnderWay     jetstream.ErrorCode = 10158 // a busy server is still storing the message of an earlier attempt
	takenDescription                     = "maximum messages per subject exceeded"
)

// unreachable reports whether a first connection failed because no server answered, which may change.
func unreachable(err error) bool {
	var network *net.OpError
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &network) && !certificate(err)
}

// certificate reports whether one side rejected the other's certificate. A server that rejects one
// only closes the connection after the handshake; nats.go has no error for that.
func certificate(err error) bool {
	for _, words := range []string{"tls:", "tls error", "x509:"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// passes reports whether an error is temporary: the servers may do later what they could not do now.
func passes(err error) bool {
	var api *jetstream.APIError
	var failed jetstream.JetStreamError
	if errors.As(err, &failed) && failed.APIError() != nil {
		api = failed.APIError()
	}
	if api != nil || errors.As(err, &api) {
		switch api.ErrorCode {
		case codeUnavailable, codeNotLeader, codeResources, codeUnderWay:
			return true
		case codeNoPeers:
			return strings.Contains(api.Description, ",") // it gives the reason: a server is offline, has no room or has not been heard from yet
		case codeStore:
			return !strings.Contains(api.Description, takenDescription)
		}
		return api.Code >= 500
	}
	for _, each := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat,
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrDisconnected, nats.ErrStaleConnection, errLost} {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

// taken reports whether a message was rejected because its subject already has one.
func taken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStore && strings.Contains(api.Description, takenDescription)
}

// advise adds what to do about an error that is not temporary.
func (c *Conn) advise(err error) error {
	var advice string
	switch {
	case err == nil:
		return nil
	case certificate(err):
		advice = "compare the certificates: the servers' must name their hosts and come from the authority given here, and this machine's from one that the servers know"
	case errors.Is(err, nats.ErrSecureConnWanted):
		advice = "these servers do not speak TLS: write nats:// or switch it on there"
	case errors.Is(err, nats.ErrSecureConnRequired):
		advice = "these servers want TLS: write tls://"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired),
		errors.Is(err, nats.ErrNkeysNotSupported):
		advice = "the servers do not know this account or user: check the credentials file, or the user and password"
	case errors.Is(err, nats.ErrPermissionViolation):
		advice = "the user's permissions do not allow this: examples/cluster/accounts.conf has what those need who run pipelines, and what workers need"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		advice = "this account has no JetStream: enable it for the account"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		advice = "JetStream is off at these servers: start them with jetstream { ... } in their file, or with -js"
	case unreachable(err):
		advice = "nobody answers there: start the servers, or correct the addresses"
	case errors.Is(err, nats.ErrMaxPayload):
		advice = "raise max_payload at the servers"
	default:
		return fmt.Errorf("%s: %w", c.servers, err)
	}
	return fmt.Errorf("%s: %w; %s", c.servers, err, advice)
}

func older(version, than string) bool {
	version, _, _ = strings.Cut(version, "-")
	return semver.Compare("v"+version, "v"+than) < 0
}

// Conn is a connection to the servers. It reconnects until it is closed.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	name    string
	log     *slog.Logger
	waits   *waits
	denied  denials
	servers string        // for people
	timeout time.Duration // of one attempt
	streams sync.Map      // handles by name

	mu      sync.Mutex
	life    context.Context    // ends when the connection is lost; replaced after a reconnect
	lose    context.CancelFunc // ends life
	back    chan struct{}      // closed while connected, or after the connection has ended for good
	closing bool
}

// Connect connects to the servers and checks that they support streams. If servers are unreachable or have streams disabled, it
// retries for ten seconds, or until ctx ends. Lasting problems, such as a wrong certificate or account, are errors at once.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	urls, err := servers(o.Servers)
	if err != nil {
		return nil, err
	}
	options, err := o.dialOptions()
	if err != nil {
		return nil, err
	}
	c := &Conn{name: o.Name, log: o.Log, waits: &waits{notify: o.Waiting}, servers: hosts(urls), back: make(chan struct{}), timeout: attemptTimeout}
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

// check finds problems early that would otherwise cause unclear errors later.
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
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.nc.Close()
}

// denials routes permission errors to the calls that caused them. A server reports such an error
// separately from replies, so the call would otherwise wait for a reply until its timeout.
type denials struct {
	log  *slog.Logger
	mu   sync.Mutex
	next int
	open map[int]*watched
}

type watched struct {
	subjects []string // an error about one of them, or about a subject below, ends the call
	end      context.CancelCauseFunc
}

// watch returns a context that ends when the servers refuse one of the subjects.
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
		if strings.HasPrefix(refused, "_INBOX.") { // no reply arrives at all
			w.end(err)
		}
		for _, subject := range w.subjects {
			if refused == subject || strings.HasPrefix(refused, subject+".") {
				w.end(err)
			}
		}
	}
}

// Options describe how to reach the servers.
type Options struct {
	Servers              string          // "nats://a:4222,b,c", or tls://...; user and password of the first apply to all
	Name                 string          // unique name of this process: "host-1234-k3v9q2"
	Credentials          string          // file: .creds (JWT and key) or a seed (NKEY); empty: none
	CA, Certificate, Key string          // PEM files for TLS; empty: the system's authorities, no certificate
	Log                  *slog.Logger    // nil: no logging
	Waiting              func(why error) // gets the reason when calls begin to wait for the servers, and nil when the wait ends. It must return soon and not use the Conn. May be nil
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
			u.Host = u.Hostname() + ":4222"
			if strings.Contains(u.Hostname(), ":") {
				u.Host = "[" + u.Hostname() + "]:4222"
			}
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
	if o.CA != "" {
		if err := readable("certificate authority", o.CA); err != nil {
			return nil, err
		}
		options = append(options, nats.RootCAs(o.CA))
	}
	switch {
	case o.Certificate != "" && o.Key != "":
		if err := errors.Join(readable("certificate", o.Certificate), readable("key", o.Key)); err != nil {
			return nil, err
		}
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

func readable(what, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s for TLS: %w", what, err)
	}
	return file.Close()
}

// Role is the part that a process plays in runs.
type Role string

// The roles.
const (
	Caller Role = "caller" // creates runs, publishes batches, reads results, removes runs
	Worker Role = "worker" // reads runs, takes batches, writes results, answers and its own state
)

// Subjects lists what a NATS user may publish and subscribe to. Deny takes precedence over Publish.
type Subjects struct {
	Publish, Deny, Subscribe []string
	Respond                  bool // allow_responses: may reply to questions
}

// Permissions returns the minimal permissions of a role at the servers.
//
// A worker's key also allows what workers do for each other: it can acknowledge any batch, answer any unanswered position, write
// any worker's state, the keeper's ledger and any key of the answers that has no value yet. It can read all runs. It cannot
// replace a result, an answer or a definition, create, change or remove streams, queues, runs or files, or publish batches.
//
// These rules cover the subjects of requests. A request also names a reply subject, and servers send replies there whatever the
// user may publish: in the account of the streams, a malicious worker could have a batch delivered to a subject that it may not
// publish to. To prevent that, give workers an account of their own, to which these subjects are exported (examples/cluster).
func Permissions(role Role) Subjects {
	reading := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.MSG.NEXT.*.*", "$JS.ACK.>",
		"$JS.API.CONSUMER.CREATE.*.*.$KV.>"}
	if role == Worker {
		return Subjects{
			Publish: append(reading, "racflow.*.results.*.*", "racflow.*.pieces.*.*", "racflow.*.ask.>", "racflow.*.tell.>",
				"$KV.*.answer.>", "$KV.*.worker.>", "$KV.*.keeper", "$KV.*.ledger", "$KV.*.lease.>"),
			Deny:      []string{"$JS.API.CONSUMER.CREATE.*.workers.>"},
			Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
			Respond:   true,
		}
	}
	return Subjects{
		Publish: append(reading, "$JS.API.CONSUMER.CREATE.*.*.racflow.>", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.DELETE.*", "$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.NAMES",
			"racflow.>", "$KV.>", "$O."+filesBucket+".>"),
		Subscribe: []string{"_INBOX.>", "racflow.*.ask.>", "racflow.*.tell.>"},
		Respond:   true,
	}
}

// Unlisted is a run with streams at the servers that the index does not list: its creation or removal was interrupted, or is still in progress.
type Unlisted struct {
	*Run           // without its definition
	Made time.Time // creation time of the newest of its streams, by the servers' clock
}

var streamForm = support.Pattern(`^(?:KV_)?racflow_(` + idPattern + `)(?:_[a-z]+)?$`)

// Unlisted finds the remains of runs that the index does not list. Foreign streams with names in a run's form are among them.
func (c *Conn) Unlisted(ctx context.Context) ([]Unlisted, error) {
	var names []string
	err := c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.NAMES"}, do: func(ctx context.Context, _ bool) error {
		names = nil
		list := c.js.StreamNames(ctx)
		for name := range list.Name() {
			names = append(names, name)
		}
		return list.Err()
	}})
	if err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	listed, err := c.Runs(ctx) // read after the streams, so that a run listed meanwhile is not taken for remains
	if err != nil {
		return nil, err
	}
	made := map[string]time.Time{}
	for _, name := range names {
		m := streamForm().FindStringSubmatch(name)
		if m == nil || name == indexStream || slices.Contains(listed, m[1]) || !slices.Contains(streamNames(m[1]), name) {
			continue
		}
		at, err := c.made(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("list streams: %w", err)
		}
		if at.After(made[m[1]]) {
			made[m[1]] = at
		}
	}
	all := make([]Unlisted, 0, len(made))
	for id, at := range made {
		all = append(all, Unlisted{&Run{c: c, id: id}, at})
	}
	return all, nil
}

// made returns when a stream was created; zero: it does not exist.
func (c *Conn) made(ctx context.Context, name string) (at time.Time, err error) {
	err = c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.INFO." + name}, do: func(ctx context.Context, _ bool) error {
		s, err := c.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil
		case err != nil:
			return err
		}
		at = s.CachedInfo().Created
		return nil
	}})
	return at, err
}
