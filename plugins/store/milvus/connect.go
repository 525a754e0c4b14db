package milvus

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
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
)

// server is the Milvus server of a config. The connection is made when it is
// needed first, and again by gRPC whenever it breaks.
type server struct {
	config   config
	endpoint endpoint
	tls      *tls.Config // nil: not encrypted
	silence  silence

	mu        sync.Mutex
	connected *client.GrpcClient
}

// endpoint is where a server listens.
type endpoint struct {
	address string // host:port
	tls     bool
}

// endpoint takes the address apart. Zilliz Cloud shows URIs with https.
func (c *config) endpoint() (endpoint, error) {
	address := c.Address
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "tcp", address
	}
	e := endpoint{tls: c.TLS || scheme == "https"}
	port := "19530"
	switch scheme {
	case "https":
		port = "443"
	case "http", "tcp":
	default:
		return e, fmt.Errorf("%q begins with none of https://, http:// and tcp://", address)
	}
	u, err := url.Parse("tcp://" + rest)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return e, fmt.Errorf("%q is not host:port or a URI of a server", address)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	e.address = net.JoinHostPort(u.Hostname(), port)
	return e, nil
}

func newServer(c config) (*server, error) {
	e, err := c.endpoint()
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "address", Err: err}
	}
	s := &server{config: c, endpoint: e}
	if !e.tls {
		if c.CA != "" || c.Cert != "" || c.ServerName != "" {
			return nil, &sdk.ArgumentError{Argument: "tls", Err: errors.New("ca, cert, key and server_name mean nothing without it")}
		}
		return s, nil
	}
	s.tls = &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(string(c.CA))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: err}
		}
		s.tls.RootCAs = x509.NewCertPool()
		if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &sdk.ArgumentError{Argument: "ca", Err: fmt.Errorf("%s holds no certificate", c.CA)}
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(string(c.Cert), string(c.Key))
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "cert", Err: err}
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return s, nil
}

// client returns the connection.
func (s *server) client(ctx context.Context) (*client.GrpcClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected != nil {
		return s.connected, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	c, err := client.NewClient(ctx, client.Config{
		Address: s.endpoint.address, Username: s.config.User, Password: s.config.Password, APIKey: s.config.Token,
		DBName: s.config.Database, EnableTLSAuth: s.endpoint.tls, DialOptions: s.dialOptions(),
		RetryRateLimit: &client.RetryRateLimitOption{}, // the retries are ours
	})
	if err != nil {
		return nil, s.refused(err)
	}
	grpcClient, ok := c.(*client.GrpcClient)
	if !ok {
		return nil, fmt.Errorf("the Milvus SDK made a client of type %T", c)
	}
	if s.config.Database != "" {
		// A server without databases ignores which one a call names.
		if _, err := c.ListDatabases(ctx); status.Code(err) == codes.Unimplemented {
			_ = c.Close()
			return nil, sdk.Invalid(&sdk.ArgumentError{Argument: "database", Err: fmt.Errorf("the server at %s has no databases", s.endpoint.address)})
		}
	}
	s.connected = grpcClient
	return s.connected, nil
}

// dialOptions are those that the SDK would use, which giving any replaces, and
// more: with the error of a connection that cannot be made, which the SDK would
// try until its context ends and then not tell; and with the errors that the
// SDK does not see.
func (s *server) dialOptions() []grpc.DialOption {
	options := append([]grpc.DialOption{}, client.DefaultGrpcOpts...)
	options = append(options,
		grpc.WithReturnConnectionError(), //nolint:staticcheck // the SDK dials in the way that this belongs to
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(checkStatus),
	)
	if s.tls != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(s.tls)))
	}
	return options
}

// refused explains why there is no connection.
func (s *server) refused(err error) error {
	err = s.mask(err)
	var fault *statusError
	switch {
	case status.Code(err) == codes.Unauthenticated, errors.As(err, &fault) && fault.unauthenticated():
		return sdk.Invalid(fmt.Errorf("the Milvus server at %s refuses the user name, password or token: %w", s.endpoint.address, err))
	case errors.Is(err, context.Canceled):
		return err
	}
	hint := "is the server running there? `make milvus` starts one for development"
	if s.endpoint.tls {
		hint = "is the server running there, with TLS and a certificate of an authority that is known here (argument ca)?"
	}
	return fmt.Errorf("no connection to a Milvus server at %s: %w; %s", s.endpoint.address, err, hint)
}

func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected == nil {
		return nil
	}
	err := s.connected.Close()
	s.connected = nil
	return err
}
