package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

const (
	// mostGarbage is about how many bytes of garbage a process accumulates before a collection, unless
	// that is a small part of its live memory.
	mostGarbage = 64 << 20

	mostPercent, leastPercent = 400, 50 // garbage in percent of live memory
)

// boundGarbage sets when the garbage collector runs. Batches are short-lived garbage, and letting it
// grow to four times the live memory saves time. For a store that works on a large commit, that would
// be gigabytes.
func boundGarbage() {
	last := mostPercent
	debug.SetGCPercent(last)
	afterCollections(func() {
		held := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(held)
		if held[0].Value.Kind() != metrics.KindUint64 {
			return
		}
		if percent := garbagePercent(held[0].Value.Uint64()); percent != last {
			last = percent
			debug.SetGCPercent(percent)
		}
	})
}

// garbagePercent returns the allowed garbage, in percent of the live memory, for a number of live
// bytes.
func garbagePercent(held uint64) int {
	return int(min(max(mostGarbage*100/max(held, 1), leastPercent), mostPercent))
}

// afterCollections calls do after each garbage collection.
func afterCollections(do func()) {
	type sentinel struct{ self *int } // the pointer makes it an object of its own
	runtime.SetFinalizer(&sentinel{new(int)}, func(*sentinel) {
		do()
		afterCollections(do)
	})
}

// Plugin serves the stages of p until the engine that started this process closes it. A plugin's main
// function only calls Plugin. If no engine started the process, Plugin prints what the program is and
// exits with status 1.
//
// On Linux, other processes of the same user cannot read the memory of this process from then on; see
// package support.
//
// Standard error carries the log, as lines of JSON. Standard output belongs to the engine until the
// first request; later output goes to the engine's log.
func Plugin(p sdk.Plugin) {
	if os.Getenv(wire.CookieKey) != wire.CookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin for racflow, which starts it where a pipeline file uses one of its stages.\n", p.Name)
		os.Exit(1)
	}
	if err := support.NoDump(); err != nil { // Configure brings secrets
		fmt.Fprintln(os.Stderr, "warning:", err)
	}
	stdin := bufio.NewReader(os.Stdin)
	var secured func() (*tls.Config, error) // nil: go-plugin makes a certificate
	if os.Getenv(wire.StageKey) != "" {
		given, _ := stdin.ReadBytes(0)
		secured = func() (*tls.Config, error) { return showing(given, os.Getenv("PLUGIN_CLIENT_CERT")) }
	}
	go exitWithHost(stdin, os.Getenv(plugin.EnvUnixSocketDir))
	if os.Getenv("GOGC") == "" {
		boundGarbage()
	}
	// go-plugin replaces os.Stderr by a pipe that is read only while the process lives. The log and
	// the stage keep the real one, so that the last words of a crashing process are not lost. The
	// engine filters by level.
	s := NewServer(p, slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	stderr := os.Stderr
	s.opened = func() {
		os.Stderr = stderr
		forgetHandshake()
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         plugin.PluginSet{"stage": registrar{server: s}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, wire.ServerOptions()...)...)
		},
		TLSProvider: secured,
		Logger:      hclog.NewNullLogger(),
	})
	s.Close()
}

// showing returns the TLS configuration of a built-in stage. The stage shows a certificate that the
// host made for all built-in stages: go-plugin would make a P-521 key in each process, which takes as
// long as the rest of a start. Callers have to show a certificate of the authority.
func showing(given []byte, authority string) (*tls.Config, error) {
	given = bytes.TrimSuffix(given, []byte{0})
	own, err := tls.X509KeyPair(given, given)
	if err != nil {
		return nil, err
	}
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM([]byte(authority))
	return &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: callers,
	}, nil
}

// exitWithHost waits for the end of standard input, which the host holds open as long as it lives.
// This also works if the host is killed.
func exitWithHost(stdin io.Reader, dir string) {
	_, _ = io.Copy(io.Discard, stdin)
	if dir != "" {
		sockets, _ := filepath.Glob(filepath.Join(dir, "plugin*"))
		for _, socket := range sockets {
			_ = os.Remove(socket)
		}
		_ = os.Remove(dir)
	}
	os.Exit(0)
}

// forgetHandshake removes the variables of the engine's handshake from the environment: a process
// that the stage starts is no plugin.
func forgetHandshake() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == wire.CookieKey || name == wire.StageKey || strings.HasPrefix(name, "PLUGIN_") {
			_ = os.Unsetenv(name)
		}
	}
}

// registrar registers the server with go-plugin's gRPC server.
type registrar struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server
}

func (r registrar) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	r.server.Register(g)
	return nil
}

func (registrar) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the plugin's end")
}

// Server is the gRPC service of one plugin process. Programs call Plugin;
// tests register a Server with a gRPC server of their own.
type Server struct {
	stagepb.UnimplementedStageServer
	plugin  sdk.Plugin
	log     *slog.Logger
	calls   sync.WaitGroup // in progress
	mu      sync.Mutex
	active  map[*byte]context.Context // of calls
	sparse  atomic.Bool               // the engine accepts sparse vectors
	stage   any                       // nil until Configure has succeeded
	opening bool
	closed  bool
	shared  sdk.Host     // the Host of the stage; nil: the Host that Configure names
	detach  func() error // closes the connection to the engine's Host; nil: there is none
	opened  func()       // called before the stage is opened; nil: nothing
}

// NewServer makes the service of a plugin. The service and the plugin's stages log to log.
func NewServer(p sdk.Plugin, log *slog.Logger) *Server {
	return &Server{plugin: p, log: log, active: map[*byte]context.Context{}}
}

// Share makes the stage use a Host of this process, whatever Configure names. It is for an engine
// that runs the stage in its own process, as tests do.
func (s *Server) Share(h sdk.Host) { s.shared = h }

// Register adds the service to a gRPC server.
func (s *Server) Register(g *grpc.Server) { stagepb.RegisterStageServer(g, s) }

// Close gives requests in progress a moment to end, and then closes the stage.
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
	s.sparse.Store(req.GetMinor() >= 1)
	reply := &stagepb.ConfigureReply{Fingerprint: wire.Valid(info.Fingerprint(stage)), Sparse: true}
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
		Block: req.GetBlock(), StateDir: req.GetStateDir(), Samples: int(req.GetSamples()),
		Labels: sdk.LabelForm{Many: req.GetLabels().GetMany(), Levels: req.GetLabels().GetLevels()}, Log: s.log.With("stage", req.GetBlock()),
	}
	setup.Host = s.shared
	if s.shared == nil && req.GetHost() != nil {
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
		return info, nil, err // do not return the stage: it may be a nil pointer in an interface
	}
	if _, fits := stage.(sdk.Fitter); fits && !info.Fits {
		return info, nil, fmt.Errorf("stage %s has a method Fit and does not say what it learns from: make it with sdk.Fits", info.Name)
	}
	if _, attaches := stage.(sdk.Attacher); !attaches && given(req.GetConfigJson(), info.Attaches) {
		return info, nil, fmt.Errorf("stage %s says sdk.Attaches(%q), and what it opens with that argument has no method Attach", info.Name, info.Attaches)
	}
	return info, stage, nil
}

// given reports whether a config gives a string argument that is not empty.
func given(config []byte, argument string) bool {
	var values map[string]any
	_ = json.Unmarshal(config, &values) // Open has checked it
	text, _ := values[argument].(string)
	return text != ""
}

// offered finds a stage of the plugin.
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

// guard turns a panic in the stage's code into an error, and logs the stack.
func (s *Server) guard(what string, call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			stack := string(debug.Stack())
			s.log.Error("panic", "call", what, "panic", fmt.Sprint(r), "stack", stack)
			err = &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("panic in the plugin: %v; its log has the whole stack:\n  %s", r, topFrames(stack))}
		}
	}()
	return call()
}

// maxFrames bounds the stack frames in an error.
const maxFrames = 4

// topFrames returns the frames that panicked, with their positions: the frames above the runtime's
// function panic.
func topFrames(stack string) string {
	_, stack, _ = strings.Cut(stack, "\npanic(")
	lines := strings.Split(stack, "\n")
	return strings.Join(lines[min(2, len(lines)):min(2+2*maxFrames, len(lines))], "\n  ")
}
