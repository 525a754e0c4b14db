package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// Errors that callers distinguish.
var (
	ErrNoRun    = errors.New("no such run at the servers")
	ErrExists   = errors.New("a run of this ID is at the servers already")
	ErrRevision = errors.New("another process wrote this key meanwhile")
	ErrNobody   = errors.New("nobody serves this")
	ErrNoFile   = errors.New("no such file at the servers")

	errLost = errors.New("the connection with the servers was lost")
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

// fromServer returns the JetStream error of a server; nil: err is none.
func fromServer(err error) *jetstream.APIError {
	var failed jetstream.JetStreamError
	if errors.As(err, &failed) {
		return failed.APIError()
	}
	return nil
}

// taken reports whether a message was rejected because its subject already has one.
func taken(err error) bool {
	api := fromServer(err)
	return api != nil && api.ErrorCode == codeStore && strings.Contains(api.Description, takenDescription)
}

func noPeers(err error) bool {
	api := fromServer(err)
	return api != nil && api.ErrorCode == codeNoPeers
}

// isAny reports whether err is one of the errors.
func isAny(err error, of ...error) bool {
	for _, each := range of {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

// passes reports whether an error is temporary: the servers may do later what they could not do now.
func passes(err error) bool {
	if api := fromServer(err); api != nil {
		switch api.ErrorCode {
		case codeUnavailable, codeNotLeader, codeResources, codeUnderWay:
			return true
		case codeNoPeers:
			return strings.Contains(api.Description, ",") // it gives the reason: a server is offline, has no room or has not been heard from yet
		case codeStore:
			return !taken(err)
		}
		return api.Code >= 500
	}
	return isAny(err, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat,
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrDisconnected, nats.ErrStaleConnection, errLost)
}

// reason explains to people why the servers cannot carry out an operation now.
func (c *Conn) reason(err error) error {
	switch api := fromServer(err); {
	case !c.nc.IsConnected():
		return fmt.Errorf("the connection with the servers is lost (%s)", c.servers)
	case api != nil:
		return fmt.Errorf("the servers cannot store or answer now: %s", api.Description)
	case isAny(err, nats.ErrNoResponders, jetstream.ErrNoStreamResponse):
		return errors.New("no server leads this stream now: fewer than half of its servers can be reached, or they have just started")
	case isAny(err, context.DeadlineExceeded, nats.ErrTimeout):
		return errors.New("the servers do not answer in time: fewer than half of them can be reached, or they are overloaded")
	}
	return err
}

// unreachable reports whether a first connection failed because no server answered, which may change.
func unreachable(err error) bool {
	var network *net.OpError
	return isAny(err, nats.ErrNoServers, nats.ErrTimeout) || errors.As(err, &network) && !certificate(err)
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

// advise adds what to do about an error that is not temporary.
func (c *Conn) advise(err error) error {
	var advice string
	switch {
	case certificate(err):
		advice = "compare the certificates: the servers' must name their hosts and come from the authority given here, and this machine's from one that the servers know"
	case errors.Is(err, nats.ErrSecureConnWanted):
		advice = "these servers do not speak TLS: write nats:// or switch it on there"
	case errors.Is(err, nats.ErrSecureConnRequired):
		advice = "these servers want TLS: write tls://"
	case isAny(err, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrNkeysNotSupported):
		advice = "the servers do not know this account or user: check the credentials file, or the user and password"
	case errors.Is(err, nats.ErrPermissionViolation):
		advice = "the user's permissions do not allow this: examples/cluster/accounts.conf has what those need who run pipelines, and what workers need"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		advice = "this account has no JetStream: enable it for the account"
	case isAny(err, jetstream.ErrJetStreamNotEnabled, nats.ErrNoResponders):
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

// ended returns why the connection has ended for good.
func (c *Conn) ended() error {
	if err := c.nc.LastError(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return c.advise(fmt.Errorf("%w: %w", nats.ErrConnectionClosed, err))
	}
	return nats.ErrConnectionClosed
}

const (
	attemptTimeout = 5 * time.Second
	firstPause     = 50 * time.Millisecond
	longestPause   = 2 * time.Second
	missingTimes   = 4 // in a row, before a stream counts as removed: servers that have just started may not know it yet
	missingPause   = 200 * time.Millisecond
	sayWaiting     = time.Second // until an operation that does not succeed is reported as waiting
)

// try repeats an operation until it succeeds, fails with a lasting error, or ctx ends. ErrNoRun: the stream that it needs
// does not exist. An empty stream: it needs none.
func (c *Conn) try(ctx context.Context, stream string, do func(context.Context) error) error {
	return c.tryFor(ctx, c.timeout, stream, do)
}

// tryFor is try with another time limit for each attempt.
func (c *Conn) tryFor(ctx context.Context, limit time.Duration, stream string, do func(context.Context) error) error {
	waiting := false
	defer func() {
		if waiting {
			c.waits.leave()
		}
	}()
	began, missing := time.Now(), 0
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := c.attempt(ctx, limit, do)
		if err == nil {
			return nil
		}
		if stream != "" && isAny(err, nats.ErrNoResponders, jetstream.ErrNoStreamResponse) && c.absent(ctx, stream) {
			err = jetstream.ErrStreamNotFound
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case c.nc.IsClosed():
			return c.ended()
		case isAny(err, jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound):
			if missing++; missing == missingTimes {
				return fmt.Errorf("%w: stream %s is not there", ErrNoRun, stream)
			}
			pause = missingPause
		case !passes(err):
			return c.advise(err)
		default:
			if missing = 0; !waiting && time.Since(began) > sayWaiting {
				waiting = true
				c.waits.enter(c.reason(err))
			}
		}
		c.log.Debug("the servers could not", "stream", stream, "err", err)
		_ = support.SleepFor(ctx, pause/2+support.Jitter(pause/2)) // if ctx has ended, the next attempt notices
	}
}

// absent reports whether the servers say that there is no such stream.
func (c *Conn) absent(ctx context.Context, stream string) bool {
	err := c.attempt(ctx, c.timeout, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, stream)
		return err
	})
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// attempt carries out an operation once, for at most limit.
func (c *Conn) attempt(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, end := c.interruptible(ctx)
	defer end()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && isAny(cause, nats.ErrPermissionViolation, errLost) {
		return cause
	}
	return err
}

// interruptible returns a context that ends when replies will not come: when the connection is lost, or the servers refuse
// something to this user. A server reports a refusal without naming the request, so it ends all that are under way.
func (c *Conn) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	c.underWay.Store(&end, nil)
	return ctx, func() {
		c.underWay.Delete(&end)
		end(nil)
	}
}

func (c *Conn) interrupt(why error) {
	c.underWay.Range(func(end, _ any) bool {
		(*end.(*context.CancelCauseFunc))(why)
		return true
	})
}

// waits calls notify when a first operation begins to wait, and when the last one has stopped.
type waits struct {
	notify func(why error)
	mu     sync.Mutex
	n      int
}

func (w *waits) enter(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n == 1 && w.notify != nil {
		w.notify(why)
	}
}

func (w *waits) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.notify != nil {
		w.notify(nil)
	}
}
