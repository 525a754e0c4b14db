package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// Server is the Milvus server of a Config. The first call connects, and gRPC
// connects again whenever the connection breaks.
type Server struct {
	Config  Config
	address string      // host:port
	tls     *tls.Config // nil: not encrypted
	silence silence

	mu        sync.Mutex
	connected *client.GrpcClient
}

// New checks a config, reads its files and connects nothing. An error is a
// *sdk.ArgumentError.
func New(c Config) (*Server, error) {
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
		DBName: s.Config.Database, EnableTLSAuth: s.tls != nil, DialOptions: s.DialOptions(),
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
		// A server without databases ignores which one a call names.
		if _, err := c.ListDatabases(ctx); status.Code(err) == codes.Unimplemented {
			_ = c.Close()
			return nil, sdk.Invalid(&sdk.ArgumentError{Argument: "database", Err: fmt.Errorf("the server at %s has no databases", s.address)})
		}
	}
	s.connected = grpcClient
	return s.connected, nil
}

// DialOptions are the SDK's own, which giving any would replace, and more: the
// error of a connection that cannot be made, which the SDK would try in silence
// until its context ends, and the errors that the SDK does not see.
func (s *Server) DialOptions() []grpc.DialOption {
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

// connectError explains why there is no connection.
func (s *Server) connectError(err error) error {
	err = s.mask(err)
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
