package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// host is the engine as the stage sees it.
type host struct {
	client stagepb.HostClient
	token  string
}

var _ sdk.Host = (*host)(nil)

// newHost makes the host at an address. The first request opens the connection.
func newHost(at *stagepb.HostAddress) (h *host, closeHost func() error, err error) {
	secure := insecure.NewCredentials() // an engine in the same process, as in tests
	if at.GetCertificatePem() != "" {
		own, err := tls.X509KeyPair([]byte(at.GetCertificatePem()), []byte(at.GetKeyPem()))
		if err != nil {
			return nil, nil, fmt.Errorf("the certificate for the engine's services: %w", err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(at.GetAuthorityPem()))
		secure = credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12})
	}
	conn, err := grpc.NewClient(at.GetAddress(), append(wire.DialOptions(), grpc.WithTransportCredentials(secure))...)
	if err != nil {
		return nil, nil, fmt.Errorf("the address of the engine's services: %w", err)
	}
	return &host{stagepb.NewHostClient(conn), at.GetToken()}, conn.Close, nil
}

func (h *host) with(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, wire.TokenKey, h.token)
}

// CacheGet implements sdk.Host.
func (h *host) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	reply, err := h.client.CacheGet(h.with(ctx), &stagepb.CacheGetRequest{Keys: wire.EncodeKeys(keys)})
	if err := outcome(ctx, reply.GetFailure(), err); err != nil {
		return nil, err
	}
	return wire.DecodeCached(reply.GetValues(), len(keys))
}

// CachePut implements sdk.Host.
func (h *host) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if len(value) > sdk.MaxCached {
		return sdk.Invalid(fmt.Errorf("a value of %d MiB, more than the %d that are cached", len(value)>>20, sdk.MaxCached>>20))
	}
	reply, err := h.client.CachePut(h.with(ctx), &stagepb.CachePutRequest{Key: key[:], Value: value})
	return outcome(ctx, reply.GetFailure(), err)
}

// Profile implements sdk.Host.
func (h *host) Profile(ctx context.Context, endpoint, model string) (json.RawMessage, error) {
	reply, err := h.client.ProfileGet(h.with(ctx), &stagepb.ProfileGetRequest{Endpoint: wire.Valid(endpoint), Model: wire.Valid(model)})
	if err := outcome(ctx, reply.GetFailure(), err); err != nil || len(reply.GetProfileJson()) == 0 {
		return nil, err
	}
	return reply.GetProfileJson(), nil
}

// KeepProfile implements sdk.Host.
func (h *host) KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error {
	reply, err := h.client.ProfilePut(h.with(ctx), &stagepb.ProfilePutRequest{Endpoint: wire.Valid(endpoint), Model: wire.Valid(model), ProfileJson: profile})
	return outcome(ctx, reply.GetFailure(), err)
}

// outcome returns the error of a call: the context's, the engine's or the connection's.
func outcome(ctx context.Context, f *stagepb.Failure, err error) error {
	switch {
	case err == nil && f != nil:
		return wire.DecodeFailure(f)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// Acquire implements sdk.Host. The stream outlives ctx, so that the engine learns the result of the
// call even if the caller has given up.
func (h *host) Acquire(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	own, stop := context.WithCancel(h.with(context.WithoutCancel(ctx)))
	stream, err := h.client.Acquire(own)
	if err == nil {
		err = stream.Send(&stagepb.AcquireRequest{Body: &stagepb.AcquireRequest_Call{Call: wire.EncodeCall(call)}})
	}
	if err != nil {
		stop()
		return nil, err
	}
	answered := make(chan error, 1)
	go func() {
		reply, err := stream.Recv()
		answered <- outcome(own, reply.GetFailure(), err)
	}()
	end := func(r sdk.Result) {
		last := &stagepb.AcquireRequest{Body: &stagepb.AcquireRequest_Result{Result: wire.EncodeResult(r)}}
		_ = errors.Join(stream.Send(last), stream.CloseSend()) // they fail if the engine is gone
	}
	select {
	case err := <-answered:
		if err != nil {
			stop()
			return nil, err
		}
		var once sync.Once
		return func(r sdk.Result) {
			once.Do(func() {
				defer stop()
				end(r)
				_, _ = stream.Recv() // the end of the stream: the engine has counted the result
			})
		}, nil
	case <-ctx.Done():
		defer stop()
		end(sdk.Result{Status: sdk.StatusLeft}) // the engine may grant the call at this very moment
		if <-answered == nil {
			_, _ = stream.Recv()
		}
		return nil, ctx.Err()
	}
}
