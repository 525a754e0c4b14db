package table

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file talks to a Milvus server. It connects with user, token and TLS, gives every call a deadline, and retries
// while the server is unreachable or overloaded. It also reports errors that the SDK ignores. It does not know what
// is stored on the server.
//
// No code of the store asks for a server's version. Differences between engines are either avoided on all of them, or
// detected at run time. "Lite 2" is Milvus Lite 2.5, "Lite 3" is Milvus Lite 3.2, "2.3" is Milvus 2.3:
//
//	engine    what is different                     found, and what is done
//	Lite 2    an error is only in Status.Code       every reply is checked (check)
//	Lite 2    errors are words, not codes           a table of them (server_errors.go)
//	Lite 2    no databases, and ignores their name  ListDatabases at connect; the argument is refused
//	Lite 2    no aliases, partitions                the call is Unimplemented (package entries)
//	Lite 2    no HNSW                               made with the first index that it takes (package table)
//	Lite 3    an index cannot be made twice         asked for before (package table)
//	Lite 3,   a restart unloads collections         the refusal; loaded, and asked again (package table)
//	2.3
//	Lite 2    lists collections without ids         read from the raw service (package table)
//	Lite 2    keeps the description of a            written as both (package table)
//	          collection, others its properties
//	Lite 2    reads OR, not, in [], tabs and line   never sent (expression.go)
//	          feeds in another way
//	Lite 2,   take NaN and text that is too long    checked before (row.go)
//	Lite 3

// Server is the Milvus server of a Config. The first call connects, and gRPC reconnects whenever the connection
// breaks.
type Server struct {
	Config  ServerConfig
	address string      // host:port
	tls     *tls.Config // nil: not encrypted
	silence silence
	written atomic.Uint64 // the server's time of the last write

	mu        sync.Mutex
	connected *client.GrpcClient
}

// pauses are the delays between attempts.
var pauses = support.Backoff{First: 50 * time.Millisecond, Max: 2 * time.Second}

// Call is one attempt of a call. If attempt is 1 or more, an earlier attempt may have reached the server. The
// client's service offers what the SDK lacks: functions, and searches with a text.
type Call func(ctx context.Context, c *client.GrpcClient, attempt int) error

// Call makes a call and retries it after transient failures, up to the retry time of the config. While the server
// does not respond at all, that time counts from the first unanswered call. So if the server stays unreachable,
// callers wait once in total, not once per call.
func (s *Server) Call(ctx context.Context, what string, do Call) error {
	giveUp := time.Now().Add(s.Config.RetryTime)
	for attempt := 0; ; attempt++ {
		if _, err := s.Client(ctx); err != nil {
			return err
		}
		err := s.once(ctx, func(ctx context.Context, c *client.GrpcClient) error { return do(ctx, c, attempt) })
		if away := s.silence.note(err); !away.IsZero() && away.Add(s.Config.RetryTime).Before(giveUp) {
			giveUp = away.Add(s.Config.RetryTime)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case isUnauthenticated(err):
			return sdk.Invalid(fmt.Errorf("milvus at %s: %s: %w: check user, password or token and their rights", s.address, what, err))
		case !isTransient(err):
			return fmt.Errorf("milvus at %s: %s: %w", s.address, what, err)
		}
		pause := pauses.Delay(attempt + 1)
		if time.Now().Add(pause).After(giveUp) {
			// The code is not transient, since this was the time for retries.
			return &sdk.Error{Code: sdk.CodeDeadline, Err: fmt.Errorf("milvus at %s: %s: %w; given up after %v of trying again: see to the server, or raise retry_time", s.address, what, err, s.Config.RetryTime)}
		}
		if err := support.SleepFor(ctx, pause); err != nil {
			return err
		}
	}
}

// once makes one attempt of a call, within the config's time limit.
func (s *Server) once(ctx context.Context, do func(context.Context, *client.GrpcClient) error) error {
	c, err := s.Client(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Config.CallTimeout)
	defer cancel()
	return do(ctx, c)
}

// silence measures how long a server has not responded.
type silence struct {
	mu    sync.Mutex
	since time.Time
}

// note records the result of an attempt. It returns when the silence began; zero: the server responds.
func (s *silence) note(err error) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch code := status.Code(err); {
	case code == codes.Canceled || errors.Is(err, context.Canceled):
	case code != codes.Unavailable && code != codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded):
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = time.Now()
	}
	return s.since
}

// ServerConfig holds the arguments of the connection.
type ServerConfig struct {
	Address  string `config:"address" affects_output:"false" default:"127.0.0.1:19530" doc:"host:port, or a URI with https:// for a server with TLS, such as Zilliz Cloud. Where a file gives no address, token or user, MILVUS_ADDRESS of the environment."`
	Database string `config:"database" affects_output:"false" doc:"The database on the server; its default one if not given."`
	User     string `config:"user" affects_output:"false" requires:"password" conflicts:"token" doc:"User name, with a password."`
	Password string `config:"password,secret" requires:"user" doc:"The user's password."`
	Token    string `config:"token,secret" doc:"API key, in place of user and password; with an address of the environment, its MILVUS_TOKEN."`

	TLS        bool     `config:"tls" affects_output:"false" doc:"Encrypt the connection; https:// does as well."`
	CA         sdk.Path `config:"ca" affects_output:"false" doc:"PEM file of the authority that signed the server's certificate; the system's if not given."`
	ServerName string   `config:"server_name" affects_output:"false" doc:"Name in the server's certificate, where it is not that of the address."`
	Cert       sdk.Path `config:"cert" affects_output:"false" requires:"key" doc:"PEM file of a client certificate, where the server asks for one."`
	Key        sdk.Path `config:"key" affects_output:"false" requires:"cert" doc:"PEM file of its key."`

	ConnectTimeout time.Duration `config:"connect_timeout" affects_output:"false" default:"10s" above:"0s" doc:"How long a connection may take."`
	CallTimeout    time.Duration `config:"call_timeout" affects_output:"false" default:"30s" above:"0s" max:"1m" doc:"How long one call may take."`
	RetryTime      time.Duration `config:"retry_time" affects_output:"false" default:"1m" min:"0s" doc:"How long a call is tried again while the server is away or overloaded."`
}

// endpoint splits the address. Zilliz Cloud shows addresses as https URIs.
func (c *ServerConfig) endpoint() (address string, secure bool, err error) {
	if strings.Contains(c.Address, "@") {
		// The parser's error text could contain a password.
		return "", false, errors.New("user and password do not belong into it: use the arguments user and password")
	}
	scheme, rest, ok := strings.Cut(c.Address, "://")
	if !ok {
		scheme, rest = "tcp", c.Address
	}
	port := "19530"
	switch scheme {
	case "https":
		port = "443"
	case "http", "tcp":
	default:
		return "", false, fmt.Errorf("%q begins with none of https://, http:// and tcp://", c.Address)
	}
	u, err := url.Parse("tcp://" + rest)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, fmt.Errorf("%q is not host:port or a URI of a server", c.Address)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port), c.TLS || scheme == "https", nil
}

// tlsConfig reads the certificate files.
func (c *ServerConfig) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(string(c.CA))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: fmt.Errorf("%s holds no certificate", c.CA)}
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(string(c.Cert), string(c.Key))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "cert", Err: err}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// NewServer checks a config and reads its files. It does not connect. An error is an *sdk.ArgumentError.
func NewServer(c ServerConfig) (*Server, error) {
	address, secure, err := c.endpoint()
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "address", Err: err}
	}
	s := &Server{Config: c, address: address}
	switch {
	case secure:
		s.tls, err = c.tlsConfig()
	case c.CA != "" || c.Cert != "" || c.ServerName != "":
		err = &sdk.ArgumentError{Argument: "tls", Err: errors.New("ca, cert, key and server_name mean nothing without it")}
	}
	return s, err
}

// Client returns the connection.
func (s *Server) Client(ctx context.Context) (*client.GrpcClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected != nil {
		return s.connected, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.Config.ConnectTimeout)
	defer cancel()
	c, err := client.NewClient(ctx, client.Config{
		Address: s.address, Username: s.Config.User, Password: s.Config.Password, APIKey: s.Config.Token,
		DBName: s.Config.Database, EnableTLSAuth: s.tls != nil, DialOptions: s.dialOptions(),
		RetryRateLimit: &client.RetryRateLimitOption{}, // Call retries
	})
	if err != nil {
		return nil, s.connectError(err)
	}
	grpcClient, ok := c.(*client.GrpcClient)
	if !ok {
		return nil, fmt.Errorf("the Milvus SDK made a client of type %T", c)
	}
	if s.Config.Database != "" {
		// A server without databases ignores the database name in calls.
		if _, err := c.ListDatabases(ctx); status.Code(err) == codes.Unimplemented {
			_ = c.Close()
			return nil, sdk.Invalid(&sdk.ArgumentError{Argument: "database", Err: fmt.Errorf("the server at %s has no databases", s.address)})
		}
	}
	s.connected = grpcClient
	return s.connected, nil
}

// dialOptions returns the SDK's own options, which any given option would replace, and further ones. They report the
// error of a failed connection, which the SDK would retry silently until its context ends, and the errors that the
// SDK ignores.
func (s *Server) dialOptions() []grpc.DialOption {
	options := append([]grpc.DialOption{}, client.DefaultGrpcOpts...)
	options = append(options,
		grpc.WithReturnConnectionError(), //nolint:staticcheck // the SDK dials in the way that this belongs to
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(s.check),
	)
	if s.tls != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(s.tls)))
	}
	return options
}

// connectError explains why the connection failed.
func (s *Server) connectError(err error) error {
	switch {
	case isUnauthenticated(err):
		return sdk.Invalid(fmt.Errorf("the Milvus server at %s refuses the user name, password or token: %w", s.address, err))
	case errors.Is(err, context.Canceled):
		return err
	}
	hint := "is the server running there? `make milvus` starts one for development"
	if s.tls != nil {
		hint = "is the server running there, with TLS and a certificate of an authority that is known here (argument ca)?"
	}
	return fmt.Errorf("no connection to a Milvus server at %s: %w; %s", s.address, err, hint)
}

// Close ends the connection.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected == nil {
		return nil
	}
	err := s.connected.Close()
	s.connected = nil
	return err
}
