package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// HostService answers the requests of plugins to the engine. The token of a call says for which host
// it is.
type HostService struct {
	stagepb.UnimplementedHostServer
	mu     sync.Mutex
	shares map[string]*share
}

// share is what the engine shares with one process.
type share struct {
	sdk.Host
	leases chan struct{} // one element for each call that is acquired, or waits to be
	ended  chan struct{}
}

// maxLeases bounds the open calls of a plugin, to detect a plugin that never reports the results of
// its calls.
const maxLeases = 4096

// Register adds the service to a gRPC server.
func (s *HostService) Register(g *grpc.Server) { stagepb.RegisterHostServer(g, s) }

// Share gives a host a token. The token is valid until remove is called, which ends all open calls
// under it.
func (s *HostService) Share(h sdk.Host) (token string, remove func()) {
	token = rand.Text()
	own := &share{Host: h, leases: make(chan struct{}, maxLeases), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares == nil {
		s.shares = map[string]*share{}
	}
	s.shares[token] = own
	return token, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.shares, token)
		close(own.ended)
	})
}

func (s *HostService) of(ctx context.Context) (*share, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range metadata.ValueFromIncomingContext(ctx, TokenKey) {
		if own := s.shares[token]; own != nil {
			return own, nil
		}
	}
	return nil, status.Error(codes.Unauthenticated, "the metadata "+TokenKey+" is not a token of a running stage")
}

// CacheGet implements the service.
func (s *HostService) CacheGet(ctx context.Context, req *stagepb.CacheGetRequest) (*stagepb.CacheGetReply, error) {
	h, err := s.of(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]sdk.Key, len(req.GetKeys()))
	for i, b := range req.GetKeys() {
		if keys[i], err = DecodeKey(b); err != nil {
			return &stagepb.CacheGetReply{Failure: EncodeFailure(sdk.Invalid(err))}, nil
		}
	}
	values, err := h.CacheGet(ctx, keys)
	if err != nil {
		return &stagepb.CacheGetReply{Failure: EncodeFailure(err)}, nil
	}
	return &stagepb.CacheGetReply{Values: EncodeCached(values)}, nil
}

// CachePut implements the service.
func (s *HostService) CachePut(ctx context.Context, req *stagepb.CachePutRequest) (*stagepb.CachePutReply, error) {
	h, err := s.of(ctx)
	if err != nil {
		return nil, err
	}
	key, err := DecodeKey(req.GetKey())
	switch {
	case err != nil:
		err = sdk.Invalid(err)
	case len(req.GetValue()) > sdk.MaxCached:
		err = sdk.Invalid(errors.New("the value is too large to be cached"))
	default:
		err = h.CachePut(ctx, key, append([]byte{}, req.GetValue()...)) // not nil where it is empty
	}
	if err != nil {
		return &stagepb.CachePutReply{Failure: EncodeFailure(err)}, nil
	}
	return &stagepb.CachePutReply{}, nil
}

// ProfileGet implements the service.
func (s *HostService) ProfileGet(ctx context.Context, req *stagepb.ProfileGetRequest) (*stagepb.ProfileGetReply, error) {
	h, err := s.of(ctx)
	if err != nil {
		return nil, err
	}
	profile, err := h.Profile(ctx, req.GetEndpoint(), req.GetModel())
	if err != nil {
		return &stagepb.ProfileGetReply{Failure: EncodeFailure(err)}, nil
	}
	return &stagepb.ProfileGetReply{ProfileJson: profile}, nil
}

// ProfilePut implements the service.
func (s *HostService) ProfilePut(ctx context.Context, req *stagepb.ProfilePutRequest) (*stagepb.ProfilePutReply, error) {
	h, err := s.of(ctx)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	switch profile := req.GetProfileJson(); {
	case len(profile) > sdk.MaxProfile:
		err = sdk.Invalid(errors.New("the profile is too large to be kept"))
	case json.Unmarshal(profile, &object) != nil || object == nil:
		err = sdk.Invalid(errors.New("the profile is not a JSON object"))
	default:
		err = h.KeepProfile(ctx, req.GetEndpoint(), req.GetModel(), profile)
	}
	if err != nil {
		return &stagepb.ProfilePutReply{Failure: EncodeFailure(err)}, nil
	}
	return &stagepb.ProfilePutReply{}, nil
}

// Acquire implements the service.
func (s *HostService) Acquire(stream stagepb.Host_AcquireServer) error {
	h, err := s.of(stream.Context())
	if err != nil {
		return err
	}
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	fail := func(err error) error {
		return stream.Send(&stagepb.AcquireReply{Failure: EncodeFailure(err)})
	}
	if request.GetCall() == nil {
		return fail(sdk.Invalid(errors.New("a call comes before its result")))
	}
	select {
	case h.leases <- struct{}{}:
		defer func() { <-h.leases }()
	default:
		return fail(errors.New("the plugin does not say how its calls end"))
	}
	ctx, withdraw := context.WithCancel(stream.Context())
	defer withdraw()
	result := make(chan sdk.Result, 1)
	go func() {
		end := sdk.Result{Status: sdk.StatusLeft, Lost: true} // nobody knows the result of the call
		if last, err := stream.Recv(); err == nil && last.GetResult() != nil {
			end = DecodeResult(last.GetResult())
		}
		result <- end
		withdraw()
	}()
	release, err := h.Acquire(ctx, DecodeCall(request.GetCall()))
	if err != nil {
		return fail(err)
	}
	sent := stream.Send(&stagepb.AcquireReply{})
	select {
	case end := <-result:
		release(end)
	case <-h.ended:
		release(sdk.Result{Status: sdk.StatusLeft, Lost: true})
	}
	return sent
}
