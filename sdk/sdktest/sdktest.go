package sdktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Foreign makes collections as another program would, for Attached.
type Foreign struct {
	// Make makes a new collection with the rows, by another client than the stage's. It returns the
	// config, a JSON object, by which the stage attaches it. The store must find everything of a row
	// but its hash: id (a decimal number, which fits keys of either type), text, context, label,
	// metadata (a string, numbers that a float32 holds exactly, a bool) and vector.
	Make func(t testing.TB, rows []sdk.Entry) (config string)
	// Look returns everything of the collection that a write could change, as another client sees it:
	// the number of rows, the fields, the indexes. The suite compares it with an earlier result of
	// Look.
	Look func(t testing.TB, config string) string
}

// Attached checks a store with sdk.Attaches on collections of another program. Their rows must come
// back letter by letter, dense scores must be cosines, filters must select what sdk.Filter says, and
// nothing may be written. The subtests are below "attached".
func Attached(t *testing.T, stage sdk.Stage, foreign Foreign, opts ...Option) {
	t.Helper()
	if stage.Attaches == "" {
		t.Fatalf("stage %s does not say sdk.Attaches", stage.Name)
	}
	run(t, stage, "{}", conformance.AttachedChecks(foreign.in(t)), opts)
}

// in returns the functions of Foreign for conformance; their failures become failures of the current
// check.
func (f Foreign) in(t *testing.T) conformance.Foreign {
	return conformance.Foreign{
		Make: func(c *conformance.T, rows []sdk.Entry) string { return f.Make(hook{t, c}, rows) },
		Look: func(c *conformance.T, config string) string { return f.Look(hook{t, c}, config) },
	}
}

// Option adjusts Stage to a stage. All options but Without and Parallel are for stores.
type Option func(*testing.T, *settings)

type settings struct {
	*conformance.Options
	parallel bool // checks run at the same time
}

// Without skips a subtest that a stage cannot pass, and the subtests below it. The path is the
// subtest's name below Stage, as in "filters/prefix". The output shows it as skipped, with the
// reason. A path that does not exist is an error.
func Without(path, reason string) Option {
	return func(_ *testing.T, o *settings) { o.Without[path] = reason }
}

// DenseOnly tests a store without a lexical leg, on collections without one. Subtests that need a
// lexical leg are skipped with the reason.
func DenseOnly(reason string) Option {
	return func(_ *testing.T, o *settings) { o.DenseOnly = reason }
}

// Parallel runs the checks at the same time, for a stage that waits for a server more than it
// computes.
func Parallel() Option {
	return func(_ *testing.T, o *settings) { o.parallel = true }
}

// Tolerance sets how far a score may be from the reference, relative to the larger of 1 and the
// score. The default is 1e-5, which float32 satisfies.
func Tolerance(t float64) Option {
	return func(_ *testing.T, o *settings) { o.Tolerance = t }
}

// Restart sets what happens between closing and opening a stage in the subtests of "restart", such as
// killing the server and starting it again. In any case, the stage opens with the same state folder.
func Restart(restart func(testing.TB)) Option {
	return func(t *testing.T, o *settings) {
		o.Restart = func(c *conformance.T) { restart(hook{t, c}) }
	}
}

// hook is the stage's test as its hooks see it: a failure in a hook fails the current check.
type hook struct {
	*testing.T
	check *conformance.T
}

func (h hook) Error(args ...any)                 { h.check.Errorf("%s", fmt.Sprint(args...)) }
func (h hook) Errorf(format string, args ...any) { h.check.Errorf(format, args...) }
func (h hook) Fatal(args ...any)                 { h.check.Fatalf("%s", fmt.Sprint(args...)) }
func (h hook) Fatalf(format string, args ...any) { h.check.Fatalf(format, args...) }
func (h hook) Fail()                             { h.check.Errorf("a hook of the test failed") }
func (h hook) FailNow()                          { h.check.Fatalf("a hook of the test failed") }

// start starts a stage behind a gRPC server in memory.
func start(ctx context.Context, stage sdk.Stage, setup sdk.Setup, config string, log io.Writer) (*conformance.Process, error) {
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(wire.ServerOptions()...)
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
	if p.Stage, err = wire.Described(stage, setup.StateDir, reply); err != nil {
		return err
	}
	p.Stage.Conn, p.Fingerprint = wire.NewConn(conn), reply.GetFingerprint()
	return nil
}

// inMemory returns a Starter for a stage in this process.
func inMemory(stage sdk.Stage) conformance.Starter {
	return func(ctx context.Context, s conformance.Setup) (*conformance.Process, error) {
		return start(ctx, stage, sdk.Setup{StateDir: s.StateDir, Samples: s.Samples}, s.Config, lines(s.Log))
	}
}

// lines passes log output on, one line at a time as slog writes it.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// Stage checks one stage. The config is a JSON object.
func Stage(t *testing.T, stage sdk.Stage, config string, opts ...Option) {
	t.Helper()
	run(t, stage, config, conformance.Checks(stage), opts)
}

// run runs checks and reports paths of Without that do not exist.
func run(t *testing.T, stage sdk.Stage, config string, checks []conformance.Check, opts []Option) {
	t.Helper()
	o := &settings{Options: conformance.NewOptions()}
	o.Short = testing.Short()
	for _, set := range opts {
		set(t, o)
	}
	t.Cleanup(func() { // after the subtests, some of which may run in parallel
		for _, path := range unmet(o.Options) {
			t.Errorf("%q is left out, but there is no such subtest", path)
		}
	})
	subject := &conformance.Subject{Stage: stage, Config: config, Start: inMemory(stage), Options: o.Options}
	for _, check := range checks {
		t.Run(check.Name, func(t *testing.T) {
			if o.parallel {
				t.Parallel()
			}
			r := check.On(t.Context(), t.TempDir(), subject)
			said := strings.Join(r.Messages, "\n")
			switch r.Status {
			case conformance.Skipped:
				t.Skip(said)
			case conformance.Failed:
				t.Errorf("%s\nwhy: %s\nto do: %s\n%s", said, r.Why, r.Fix, strings.Join(r.Log, "\n"))
			}
		})
	}
}

// unmet lists the paths of Without that do not exist. If the command line chose among the subtests,
// it returns nothing.
func unmet(o *conformance.Options) []string {
	chosen := slices.ContainsFunc([]string{"test.run", "test.skip"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && strings.Contains(f.Value.String(), "/")
	})
	if chosen {
		return nil
	}
	return o.Unmet()
}

// Open runs a stage behind a gRPC server in memory, as its process would, and returns the engine's
// end of the connection. The stage ends with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*wire.Stage, error) {
	t.Helper()
	p, err := start(t.Context(), stage, setup, config, t.Output())
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	return p.Stage, nil
}

// StateDir returns the folder that the engine gives to a stage's process. For an embedder that fits,
// this is a folder below dir with what the embedder has learnt; otherwise it is dir itself.
func StateDir(t testing.TB, stage sdk.Stage, dir string, state []byte) string {
	t.Helper()
	if stage.Kind != sdk.KindEmbed || !stage.Fits {
		return dir
	}
	dir, err := wire.StateDir(dir, state)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
