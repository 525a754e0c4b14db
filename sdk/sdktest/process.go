package sdktest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// start starts a stage behind a gRPC server in memory.
func start(ctx context.Context, stage sdk.Stage, setup sdk.Setup, config string, log io.Writer) (*conformance.Process, error) {
	listener := bufconn.Listen(1 << 20)
	arrived := make(chan struct{}, 1)
	g := grpc.NewServer(append(wire.ServerOptions(), grpc.ChainUnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if info.FullMethod != stagepb.Stage_Configure_FullMethodName {
				select {
				case arrived <- struct{}{}:
				default:
				}
			}
			return handle(ctx, request)
		}))...)
	plugin := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{stage}}
	server := serve.NewServer(plugin, slog.New(slog.NewTextHandler(log, nil)))
	server.Register(g)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:memory", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		return nil, err
	}
	p := &conformance.Process{
		Server: server, Arrived: arrived,
		Close: sync.OnceFunc(func() { _ = conn.Close(); g.Stop(); server.Close() }),
	}
	if err := configure(ctx, p, conn, stage, setup, config); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func configure(ctx context.Context, p *conformance.Process, conn *grpc.ClientConn, stage sdk.Stage, setup sdk.Setup, config string) error {
	reply, err := stagepb.NewStageClient(conn).Configure(ctx, &stagepb.ConfigureRequest{
		Kind: wire.EncodeKind(stage.Kind), Name: stage.Name, Block: stage.Name, ConfigJson: []byte(config),
		StateDir: setup.StateDir, Samples: uint32(setup.Samples),
	})
	if err != nil {
		return err
	}
	var invalid []error
	for _, e := range wire.DecodeArgumentErrors(reply.GetErrors()) {
		invalid = append(invalid, e)
	}
	if len(invalid) > 0 {
		return errors.Join(invalid...)
	}
	if p.Stage, err = remote.Described(stage, setup.StateDir, reply); err != nil {
		return err
	}
	p.Stage.Conn, p.Fingerprint = remote.NewConn(conn), reply.GetFingerprint()
	return nil
}

// inMemory is a Starter of a stage in this process.
func inMemory(stage sdk.Stage) conformance.Starter {
	return func(ctx context.Context, s conformance.Setup) (*conformance.Process, error) {
		return start(ctx, stage, sdk.Setup{StateDir: s.StateDir, Samples: s.Samples}, s.Config, lines(s.Log))
	}
}

// lines passes on what is logged, a line at a time as slog writes it.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
