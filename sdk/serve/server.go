package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Server is the gRPC service of one plugin process. Programs call Plugin;
// tests register a Server with a gRPC server of their own.
type Server struct {
	stagepb.UnimplementedStageServer
	plugin  sdk.Plugin
	log     *slog.Logger
	calls   sync.WaitGroup // being worked on
	mu      sync.Mutex
	active  map[*byte]context.Context // of calls
	stage   any                       // nil until Configure has succeeded
	opening bool
	closed  bool
	detach  func() error // closes the connection to what the engine shares; nil: there is none
	opened  func()       // called before the stage is opened; nil: nothing
}

// NewServer makes the service of a plugin. It logs to log, and so do the
// plugin's stages.
func NewServer(p sdk.Plugin, log *slog.Logger) *Server {
	return &Server{plugin: p, log: log, active: map[*byte]context.Context{}}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(g *grpc.Server) { stagepb.RegisterStageServer(g, s) }

// Close gives requests that are still worked on a moment and closes the stage.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() { s.calls.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(200 * time.Millisecond):
	}
	s.mu.Lock()
	stage, detach := s.stage, s.detach
	s.stage, s.detach = nil, nil
	s.mu.Unlock()
	if c, ok := stage.(io.Closer); ok {
		if err := s.guard("close", c.Close); err != nil {
			s.log.Error("the stage did not close", "error", err)
		}
	}
	if detach != nil {
		_ = detach()
	}
}

// Describe implements the service.
func (s *Server) Describe(context.Context, *stagepb.DescribeRequest) (*stagepb.DescribeReply, error) {
	return wire.EncodePlugin(s.plugin), nil
}

// Configure implements the service: it opens the one stage of this process.
func (s *Server) Configure(ctx context.Context, req *stagepb.ConfigureRequest) (*stagepb.ConfigureReply, error) {
	s.mu.Lock()
	busy := s.stage != nil || s.opening
	s.opening = s.opening || !busy
	s.mu.Unlock()
	if busy {
		return nil, status.Error(codes.FailedPrecondition, "a process runs one stage, and this one has been configured")
	}
	if s.opened != nil {
		s.opened()
	}
	info, stage, err := s.open(ctx, req)
	s.mu.Lock()
	s.stage, s.opening = stage, false
	s.mu.Unlock()
	if err != nil {
		return &stagepb.ConfigureReply{Errors: wire.EncodeArgumentErrors(err)}, nil
	}
	reply := &stagepb.ConfigureReply{Fingerprint: wire.Valid(info.Fingerprint(stage))}
	if e, ok := stage.(sdk.Embedder); ok {
		reply.Dimension = uint32(max(e.Dimension(), 0))
	}
	_, reply.Fits = stage.(sdk.Fitter)
	if d, ok := stage.(sdk.Drawer); ok {
		draw := d.Random()
		reply.Random, reply.RandomParts = uint32(max(draw.Count, 0)), uint32(max(draw.Parts, 0))
		reply.RandomShared, reply.RandomSeed = draw.Shared, draw.Seed
	}
	if r, ok := stage.(sdk.Resolver); ok {
		if reply.ResolvedJson, err = json.Marshal(r.Resolved()); err != nil {
			return nil, fmt.Errorf("what the stage has resolved: %w", err)
		}
	}
	return reply, nil
}

func (s *Server) open(ctx context.Context, req *stagepb.ConfigureRequest) (info sdk.Stage, stage any, err error) {
	if info, err = s.offered(req.GetKind(), req.GetName()); err != nil {
		return info, nil, err
	}
	setup := sdk.Setup{
		Block: req.GetBlock(), StateDir: req.GetStateDir(), Samples: int(req.GetSamples()), Log: s.log.With("stage", req.GetBlock()),
	}
	if req.GetHost() != nil {
		shared, detach, err := newHost(req.GetHost())
		if err != nil {
			return info, nil, err
		}
		s.mu.Lock()
		setup.Host, s.detach = shared, detach
		s.mu.Unlock()
	}
	err = s.guard("open", func() error {
		stage, err = info.Open(ctx, setup, req.GetConfigJson())
		return err
	})
	if err != nil {
		return info, nil, err // not the stage: it may be a nil pointer in an interface
	}
	if _, fits := stage.(sdk.Fitter); fits && !info.Fits {
		return info, nil, fmt.Errorf("stage %s has a method Fit and does not say what it learns from: make it with sdk.Fits", info.Name)
	}
	if _, attaches := stage.(sdk.Attacher); !attaches && given(req.GetConfigJson(), info.Attaches) {
		return info, nil, fmt.Errorf("stage %s says sdk.Attaches(%q), and what it opens with that argument has no method Attach", info.Name, info.Attaches)
	}
	return info, stage, nil
}

// given reports whether a config has a string argument that is not empty.
func given(config []byte, argument string) bool {
	var values map[string]any
	_ = json.Unmarshal(config, &values) // Open has read it
	text, _ := values[argument].(string)
	return text != ""
}

// offered finds a stage among those of the plugin.
func (s *Server) offered(encoded stagepb.Kind, name string) (sdk.Stage, error) {
	kind, _ := wire.DecodeKind(encoded)
	for _, info := range s.plugin.Stages {
		if info.Kind == kind && info.Name == name {
			return info, nil
		}
	}
	return sdk.Stage{}, fmt.Errorf("plugin %s %s has no %s stage %q", s.plugin.Name, s.plugin.Version, kind, name)
}

// Validate implements the service: it checks a config and opens nothing.
func (s *Server) Validate(_ context.Context, req *stagepb.ValidateRequest) (*stagepb.ValidateReply, error) {
	info, err := s.offered(req.GetKind(), req.GetName())
	if err == nil {
		err = s.guard("validate", func() error { return info.Validate(req.GetConfigJson()) })
	}
	return &stagepb.ValidateReply{Errors: wire.EncodeArgumentErrors(err)}, nil
}

// guard turns a panic of the stage's code into an error and puts the stack on
// standard error.
func (s *Server) guard(what string, call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			stack := string(debug.Stack())
			s.log.Error("panic", "call", what, "panic", fmt.Sprint(r), "stack", stack)
			err = &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("panic in the plugin: %v; its log has the whole stack:\n  %s", r, stageFrames(stack))}
		}
	}()
	return call()
}
