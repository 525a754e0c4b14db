package simulation

import (
	"context"
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

// start starts a stage in memory: it is workspace.Options.Start. The stages end with the machine.
func (m *machine) start(all []sdk.Stage) func(context.Context, host.Spec) (any, error) {
	return m.startIn(m.ctx, "", all)
}

// startIn is start for one of several processes on the machine; the stages end with the life of this
// process.
func (m *machine) startIn(life context.Context, prefix string, all []sdk.Stage) func(context.Context, host.Spec) (any, error) {
	return func(ctx context.Context, s host.Spec) (any, error) {
		at := slices.IndexFunc(all, func(i sdk.Stage) bool { return i.Kind == s.Kind && i.Name == s.Use })
		if at < 0 {
			return nil, fmt.Errorf("there is no stage %s.%s", s.Kind, s.Use)
		}
		what := fmt.Sprintf("%s%s.%s", prefix, s.Kind, s.Block)
		if err := m.turn("start " + what); err != nil {
			return nil, err
		}
		if m.refuses != nil && m.refuses() {
			m.fault("start", "%s does not start", what)
			return nil, fmt.Errorf("%s does not start", what)
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
		runs, end := context.WithCancel(life)
		l := &link{m: m, what: what, spec: s, server: server, waits: s.Kind != sdk.KindStore, runs: runs}
		l.sees("Start", nil)
		stage.Conn, stage.Name = l, what
		m.stages.Add(1)
		ended := make(chan struct{})
		context.AfterFunc(runs, func() {
			server.Close()
			m.stages.Add(-1)
			close(ended)
		})
		return process{stage, reply.GetFingerprint(), func() { end(); <-ended }}, nil
	}
}

// process is a stage that the engine sees as a process.
type process struct {
	*wire.Stage
	fingerprint string
	end         func()
}

func (p process) Fingerprint() string { return p.fingerprint }
func (p process) Close() error        { p.end(); return nil }

// link is the connection to a stage in memory.
type link struct {
	m      *machine
	what   string
	spec   host.Spec
	server *serve.Server
	waits  bool            // calls wait for their turn
	runs   context.Context // ends with the stage
}

// sees shows a message to the machine's scenario.
func (l *link) sees(name string, message any) {
	if l.m.sees != nil {
		l.m.sees(l, name, message)
	}
}

// Invoke implements wire.Caller with the handlers that gRPC would call.
func (l *link) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	name := path.Base(method)
	about := name + " " + digest(request.(proto.Message))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.runs, cancel)()
	if sample, ok := request.(*stagepb.SampleRequest); ok {
		defer l.m.works(slices.Concat(sample.GetRows().GetText(), sample.GetRows().GetPrompts().GetText()))()
	}
	if err := l.pass(about); err != nil {
		return err
	}
	l.sees(name, request)
	at := slices.IndexFunc(stagepb.Stage_ServiceDesc.Methods, func(d grpc.MethodDesc) bool { return d.MethodName == name })
	answer, err := stagepb.Stage_ServiceDesc.Methods[at].Handler(l.server, ctx, func(into any) error {
		proto.Merge(into.(proto.Message), request.(proto.Message))
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if err := l.pass(about + " answers"); err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), answer.(proto.Message))
	return nil
}

func (l *link) pass(name string) (err error) {
	if l.waits {
		err = l.m.turn(l.what + " " + name)
	} else {
		err = l.m.step()
	}
	if err == nil && l.runs.Err() != nil {
		err = host.ErrClosed
	}
	return err
}

// Fit implements wire.Caller.
func (l *link) Fit(ctx context.Context, rows iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	if err := l.pass("Fit"); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	s := &fitting{ctx: ctx, next: func() (*stagepb.FitRequest, error, bool) {
		request, err, ok := next()
		l.sees("Fit", request)
		return request, err, ok
	}}
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

// digest tells requests apart, independent of their order.
func digest(m proto.Message) string {
	raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	h := fnv.New32a()
	h.Write(raw)
	return fmt.Sprintf("%08x", h.Sum32())
}

// works records that a stage works on texts, until done.
func (m *machine) works(texts []string) (done func()) {
	add := func(n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, text := range texts {
			if !m.dead { // work that was in progress at its death stays recorded
				m.open[text] += n
			}
		}
	}
	add(1)
	return func() { add(-1) }
}
