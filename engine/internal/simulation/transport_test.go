package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log/slog"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// start starts a stage in memory: it is engine.Options.Start.
func (m *machine) start(all []sdk.Stage) func(context.Context, host.Spec) (any, error) {
	return func(ctx context.Context, s host.Spec) (any, error) {
		at := slices.IndexFunc(all, func(i sdk.Stage) bool { return i.Kind == s.Kind && i.Name == s.Use })
		if at < 0 {
			return nil, fmt.Errorf("there is no stage %s.%s", s.Kind, s.Use)
		}
		what := fmt.Sprintf("%s.%s", s.Kind, s.Block)
		if err := m.turn("start " + what); err != nil {
			return nil, err
		}
		if s.StateDir != "" {
			if err := disk.MakeFolder(s.StateDir); err != nil {
				return nil, err
			}
		}
		if s.Fits {
			var err error
			if s.StateDir, err = wire.StateDir(s.StateDir, s.State); err != nil {
				return nil, err
			}
		}
		server := serve.NewServer(sdk.Plugin{Name: "simulated", Stages: all[at : at+1]}, slog.New(slog.DiscardHandler))
		server.Share(s.Host)
		reply, err := server.Configure(ctx, &stagepb.ConfigureRequest{
			Kind: wire.EncodeKind(s.Kind), Name: s.Use, Block: s.Block, ConfigJson: s.Config, StateDir: s.StateDir, Samples: uint32(s.Samples),
		})
		if err != nil {
			return nil, err
		}
		if faults := wire.DecodeArgumentErrors(reply.GetErrors()); len(faults) > 0 {
			return nil, &host.ConfigError{Kind: s.Kind, Block: s.Block, Errors: faults}
		}
		stage, err := wire.Described(all[at], s.StateDir, reply)
		if err != nil {
			return nil, err
		}
		stage.Conn, stage.Name = &link{m, what, server, s.Kind != sdk.KindStore}, what
		context.AfterFunc(m.ctx, server.Close)
		return process{stage, reply.GetFingerprint()}, nil
	}
}

// process is a stage as the engine sees one that runs as a process.
type process struct {
	*wire.Stage
	fingerprint string
}

func (p process) Fingerprint() string { return p.fingerprint }
func (p process) Close() error        { return nil }

// link is the way to a stage in memory.
type link struct {
	m      *machine
	what   string
	server *serve.Server
	waits  bool // calls wait for their turn
}

// Invoke implements wire.Caller by the handlers that gRPC would call.
func (l *link) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	name := path.Base(method)
	about := digest(request)
	if err := l.pass(name + about); err != nil {
		return err
	}
	at := slices.IndexFunc(stagepb.Stage_ServiceDesc.Methods, func(d grpc.MethodDesc) bool { return d.MethodName == name })
	answer, err := stagepb.Stage_ServiceDesc.Methods[at].Handler(l.server, ctx, func(into any) error {
		proto.Merge(into.(proto.Message), request.(proto.Message))
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if err := l.pass(name + " answers" + about); err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), answer.(proto.Message))
	return nil
}

// digest tells requests of the same kind apart, which wait for their turns side by side.
func digest(request any) string {
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(request.(proto.Message))
	h := fnv.New32a()
	h.Write(data)
	return fmt.Sprintf(" %08x", h.Sum32())
}

func (l *link) pass(name string) error {
	if l.waits {
		return l.m.turn(l.what + " " + name)
	}
	return l.m.step()
}

// Fit implements wire.Caller.
func (l *link) Fit(ctx context.Context, rows iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	if err := l.pass("Fit"); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	s := &fitting{ctx: ctx, next: next}
	if err := l.server.Fit(s); err != nil {
		return nil, err
	}
	return s.reply, l.pass("Fit answers")
}

// fitting is the stream of Fit.
type fitting struct {
	grpc.ServerStream
	ctx   context.Context
	next  func() (*stagepb.FitRequest, error, bool)
	reply *stagepb.FitReply
}

func (f *fitting) Context() context.Context               { return f.ctx }
func (f *fitting) SendAndClose(r *stagepb.FitReply) error { f.reply = r; return nil }

func (f *fitting) Recv() (*stagepb.FitRequest, error) {
	request, err, ok := f.next()
	if !ok {
		return nil, io.EOF
	}
	return request, err
}

var errAway = errors.New("the service is away")
