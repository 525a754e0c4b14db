package harness

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Promptly is how long a stage may take to notice that it is cancelled: long,
// for machines that are busy with other things. The suite's own tests shorten it.
var Promptly = 10 * time.Second

// Process is a stage behind a gRPC server in memory.
type Process struct {
	Stage   *remote.Stage // the engine's end
	Server  *serve.Server // the process's end
	Close   func()        // may be called again
	Arrived chan struct{} // gets a value for a call of a kind's method, unless it has one
}

// Start starts a process, which ends with the test at the latest.
func Start(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*Process, error) {
	t.Helper()
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
	p := &Process{Arrived: arrived, Server: serve.NewServer(plugin, slog.New(slog.NewTextHandler(t.Output(), nil)))}
	p.Server.Register(g)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:memory", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		return nil, err
	}
	p.Close = sync.OnceFunc(func() { _ = conn.Close(); g.Stop(); p.Server.Close() })
	t.Cleanup(p.Close)

	reply, err := stagepb.NewStageClient(conn).Configure(t.Context(), &stagepb.ConfigureRequest{
		Kind: wire.EncodeKind(stage.Kind), Name: stage.Name, Block: stage.Name, ConfigJson: []byte(config),
		StateDir: setup.StateDir, Samples: uint32(setup.Samples),
	})
	if err != nil {
		return nil, err
	}
	var invalid []error
	for _, e := range wire.DecodeArgumentErrors(reply.GetErrors()) {
		invalid = append(invalid, e)
	}
	if len(invalid) > 0 {
		return nil, errors.Join(invalid...)
	}
	if p.Stage, err = remote.Described(stage, setup.StateDir, reply); err != nil {
		return nil, err
	}
	p.Stage.Conn = remote.NewConn(conn)
	return p, nil
}
