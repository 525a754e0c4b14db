package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Stage checks one stage, opened with a config that is a JSON object.
func Stage(t *testing.T, stage sdk.Stage, config string, opts ...Option) {
	t.Helper()
	o := optionsOf(opts)
	run := subtest{t, "", o}
	run.Run("description", func(t tester) { report(t, description(stage)) })
	run.Run("config", func(t tester) { report(t, unknownArgument(t, stage, config)) })
	if stage.Kind == sdk.KindStore {
		(&suite{stage, config, o}).run(run)
	}
	for name, check := range checks(stage) {
		run.Run(name, func(t tester) { report(t, check(t, stage, config)) })
	}
	if partial() {
		return
	}
	for _, path := range o.unmet() {
		t.Errorf("%q is left out, but there is no such subtest", path)
	}
}

func report(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func checks(stage sdk.Stage) map[string]check {
	switch stage.Kind {
	case sdk.KindChunk:
		return chunkChecks
	case sdk.KindEnrich:
		return enrichChecks
	case sdk.KindEmbed:
		return embedChecks
	case sdk.KindStore:
		return nil // they are a suite of their own
	}
	return batchChecks
}

// Open runs a stage behind a gRPC server in memory, as its process would, and
// returns the engine's end. It ends with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*remote.Stage, error) {
	t.Helper()
	p, err := start(t, stage, setup, config)
	if err != nil {
		return nil, err
	}
	return p.stage, nil
}

// StateDir returns the folder that the engine gives to a process of a stage: below dir, with
// what it has learnt, where it is an embedder that fits; else dir itself.
func StateDir(t testing.TB, stage sdk.Stage, dir string, state []byte) string {
	t.Helper()
	if stage.Kind != sdk.KindEmbed || !stage.Fits {
		return dir
	}
	dir, err := remote.StateDir(dir, state)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is a stage behind a gRPC server in memory.
type process struct {
	stage  *remote.Stage
	server *serve.Server
	close  func() // once is enough, but more do no harm
	// arrived gets a value for a call of a kind's method, unless it has one.
	arrived chan struct{}
}

// start starts a process, which ends with the test at the latest.
func start(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*process, error) {
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
	p := &process{arrived: arrived, server: serve.NewServer(plugin, slog.New(slog.NewTextHandler(t.Output(), nil)))}
	p.server.Register(g)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:memory", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		return nil, err
	}
	p.close = sync.OnceFunc(func() { _ = conn.Close(); g.Stop(); p.server.Close() })
	t.Cleanup(p.close)

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
	if p.stage, err = remote.Described(stage, setup.StateDir, reply); err != nil {
		return nil, err
	}
	p.stage.Conn = remote.NewConn(conn)
	return p, nil
}

// description checks that people and other processes can understand what a
// stage says of itself.
func description(s sdk.Stage) error {
	var errs []error
	if strings.TrimSpace(s.Doc) == "" {
		errs = append(errs, errors.New("the stage has no doc"))
	}
	for _, a := range s.Arguments {
		if strings.TrimSpace(a.Doc) == "" {
			errs = append(errs, fmt.Errorf("argument %s has no doc", a.Name))
		}
		if a.Secret && a.Default != nil {
			errs = append(errs, fmt.Errorf("argument %s is secret and has a default", a.Name))
		}
	}
	p := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{s}}
	got, err := wire.DecodePlugin(wire.EncodePlugin(p))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if g := got.Stages[0]; g.Reads != s.Reads || !sameArguments(g.Arguments, s.Arguments) {
		errs = append(errs, fmt.Errorf("the description changes on its way: %+v", g))
	}
	return errors.Join(errs...)
}

func sameArguments(a, b []sdk.Argument) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// unknownArgument checks that a stage refuses an argument that it lacks.
func unknownArgument(t testing.TB, stage sdk.Stage, config string) error {
	given := map[string]any{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &given); err != nil {
			return fmt.Errorf("the test's config: %w", err)
		}
	}
	given["no_such_argument"] = 1
	raw, err := json.Marshal(given)
	if err != nil {
		return err
	}
	_, err = Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, string(raw))
	var refused *sdk.ArgumentError
	if !errors.As(err, &refused) || refused.Argument != "no_such_argument" {
		return fmt.Errorf("an unknown argument gave %v, not an error that names it", err)
	}
	return nil
}
