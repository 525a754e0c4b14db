package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// services is the listener for what the engine shares with stages. It is opened when the first
// stage needs it.
type services struct {
	wire.HostService
	identity *identity

	mu     sync.Mutex
	dir    string
	server *grpc.Server // nil: not opened
}

// share makes what a process needs to reach h. remove ends it.
func (s *services) share(dir string, h sdk.Host) (at *stagepb.HostAddress, remove func(), err error) {
	opened, err := s.open(dir)
	if err != nil {
		return nil, nil, err
	}
	token, remove := s.Share(h)
	return &stagepb.HostAddress{
		Address: "unix:" + filepath.Join(opened, "host"), Token: token,
		AuthorityPem: s.identity.authority, CertificatePem: s.identity.certificate, KeyPem: s.identity.key,
	}, remove, nil
}

// open returns the folder of the socket.
func (s *services) open(dir string) (opened string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return s.dir, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("offer the engine's services: %w", err)
		}
	}()
	if s.dir, err = os.MkdirTemp(dir, "host"); err != nil {
		return "", err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(s.dir, "host"), Net: "unix"})
	if err != nil {
		return "", err
	}
	s.server = grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(credentials.NewTLS(s.identity.serving())))...)
	s.Register(s.server)
	go func() { _ = s.server.Serve(listener) }() // until close
	return s.dir, nil
}

func (s *services) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.Stop()
		_ = os.RemoveAll(s.dir)
	}
}

// sharedHost is what the engine shares with a stage, without the secrets that the
// stage might say there.
type sharedHost struct {
	sdk.Host
	secrets *redact.Secrets
}

// Acquire implements sdk.Host.
func (h sharedHost) Acquire(ctx context.Context, c sdk.Call) (func(sdk.Result), error) {
	c.Endpoint = h.secrets.Message(c.Endpoint)
	release, err := h.Host.Acquire(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(r sdk.Result) {
		r.Reason = h.secrets.Message(r.Reason)
		release(r)
	}, nil
}

// KeepProfile implements sdk.Host. A profile with a secret in it is not kept.
func (h sharedHost) KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error {
	for _, text := range []string{endpoint, model, string(profile)} {
		if h.secrets.Message(text) != text {
			return nil
		}
	}
	return h.Host.KeepProfile(ctx, endpoint, model, profile)
}

// CachePut implements sdk.Host. A value with a secret in it is not cached: what it was the
// answer to is asked again.
func (h sharedHost) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if h.secrets.InResults() && h.secrets.Result(string(value)) != string(value) {
		return nil
	}
	return h.Host.CachePut(ctx, key, value)
}
