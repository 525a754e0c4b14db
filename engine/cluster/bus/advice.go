package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/mod/semver"
)

// Errors that callers tell apart.
var (
	ErrNoRun    = errors.New("no such run at the servers")
	ErrExists   = errors.New("a run of this ID is at the servers already")
	ErrRevision = errors.New("somebody else wrote this key meanwhile")
	ErrNobody   = errors.New("nobody serves this")
	ErrNoFile   = errors.New("no such file at the servers")
)

// Codes of JetStream's errors that nats.go has no names for (errors.json of nats-server).
const (
	codeUnavailable  jetstream.ErrorCode = 10008 // no leader of all streams
	codeNotLeader    jetstream.ErrorCode = 10009
	codeResources    jetstream.ErrorCode = 10002 // of the account
	codeNoPeers      jetstream.ErrorCode = 10005 // not as many servers as replicas
	codeStore        jetstream.ErrorCode = 10077 // could not be stored
	codeUnderWay     jetstream.ErrorCode = 10158 // a busy server is still storing the same message, as an earlier attempt sent it
	takenDescription                     = "maximum messages per subject exceeded"
)

// unreachable says whether a first connection failed because nobody answers there, which may pass.
func unreachable(err error) bool {
	var network *net.OpError
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &network) && !certificate(err)
}

// certificate says whether one side refused the other's. A server that refuses just ends the connection, after the handshake; nats.go has
// no error of its own for that.
func certificate(err error) bool {
	for _, words := range []string{"tls:", "tls error", "x509:"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// passes says whether the servers may do later what they could not do now.
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
			return strings.Contains(api.Description, ",") // it says why: a server is away, has no room or was not heard from yet
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

// taken says whether a message was refused since another stands under its subject.
func taken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStore && strings.Contains(api.Description, takenDescription)
}

// advise says what to do about an error that does not pass.
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
