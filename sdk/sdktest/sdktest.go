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

// promptly is how long a stage may take to notice that it is cancelled: long,
// for machines that are busy with other things.
var promptly = 10 * time.Second

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

// A check returns what a stage does wrong.
type check func(t testing.TB, stage sdk.Stage, config string) error

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
}

// start starts a process, which ends with the test at the latest.
func start(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*process, error) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(wire.ServerOptions()...)
	plugin := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{stage}}
	p := &process{server: serve.NewServer(plugin, slog.New(slog.NewTextHandler(t.Output(), nil)))}
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
	var faults []error
	for _, f := range wire.DecodeArgumentErrors(reply.GetErrors()) {
		faults = append(faults, f)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
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
	var faults []error
	if strings.TrimSpace(s.Doc) == "" {
		faults = append(faults, errors.New("the stage has no doc"))
	}
	for _, a := range s.Arguments {
		if strings.TrimSpace(a.Doc) == "" {
			faults = append(faults, fmt.Errorf("argument %s has no doc", a.Name))
		}
		if a.Secret && a.Default != nil {
			faults = append(faults, fmt.Errorf("argument %s is secret and has a default", a.Name))
		}
	}
	p := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{s}}
	got, err := wire.DecodePlugin(wire.EncodePlugin(p))
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	if g := got.Stages[0]; g.Reads != s.Reads || !sameArguments(g.Arguments, s.Arguments) {
		faults = append(faults, fmt.Errorf("the description changes on its way: %+v", g))
	}
	return errors.Join(faults...)
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
	var fault *sdk.ArgumentError
	if !errors.As(err, &fault) || fault.Argument != "no_such_argument" {
		return fmt.Errorf("an unknown argument gave %v, not an error that names it", err)
	}
	return nil
}

// cancelled checks that a stage gives up a call that is no longer wanted.
func cancelled(call, probe func(context.Context) error) error {
	// The first call may take longer than the pause.
	if err := probe(remote.Alone(context.Background())); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	_ = call(ctx)
	// The probe gets its turn only when the stage has ended its work on the cancelled call.
	ctx, cancel = context.WithTimeout(context.Background(), promptly)
	defer cancel()
	if err := probe(remote.Alone(ctx)); err != nil {
		return fmt.Errorf("%v after a cancelled call: %w", promptly, err)
	}
	return nil
}
