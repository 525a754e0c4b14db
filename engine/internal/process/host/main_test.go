package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// TestMain makes the test binary also the plugin, programs that are no plugins, and a host that will
// be killed.
func TestMain(m *testing.M) {
	if os.Getenv(wire.StageKey) != "" {
		serve.Plugin(testPlugin)
		return
	}
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "plugin":
		serve.Plugin(testPlugin)
	case "dying":
		serveUntil(os.Args[2])
	case "noisy":
		fmt.Fprintln(os.Stderr, `{"@message":5}`)
		fmt.Fprintln(os.Stderr, strings.Repeat("e", 1<<20))
		fmt.Fprintln(os.Stderr, `{"level":"WARN","msg":"low on memory","free":3}`)
		serve.Plugin(testPlugin)
	case "garbage":
		fmt.Println("hello, I am a spreadsheet")
		time.Sleep(time.Minute)
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence found, token hunter2secret")
		os.Exit(7)
	case "endless":
		for {
			fmt.Print("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
		}
	case "old":
		config := wire.Handshake()
		config.ProtocolVersion = 0
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: config, Plugins: plugin.PluginSet{}, Logger: hclog.NewNullLogger(), GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(o...) }})
	case "tcp":
		fmt.Println("1|2|tcp|127.0.0.1:9|grpc|")
		time.Sleep(time.Minute)
	case "plain":
		fmt.Println("1|2|unix|/tmp/x|grpc|")
		time.Sleep(time.Minute)
	case "open", "closed": // until its input ends
		if os.Args[1] == "closed" {
			if err := support.NoDump(); err != nil {
				panic(err)
			}
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "host":
		actAsHost()
	default:
		os.Exit(m.Run())
	}
}

// serveUntil serves a plugin that ends when a method is called.
func serveUntil(method string) {
	end := func(called string) {
		if strings.HasSuffix(called, "/"+method) {
			os.Exit(5)
		}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake(), Plugins: plugin.PluginSet{"stage": registrar{}}, Logger: hclog.NewNullLogger(),
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				end(info.FullMethod)
				return handle(ctx, r)
			}), grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				end(info.FullMethod)
				return handle(server, s)
			}))...)
		},
	})
}

type registrar struct {
	plugin.NetRPCUnsupportedPlugin
	plugin.GRPCPlugin
}

func (registrar) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	serve.NewServer(testPlugin, slog.New(slog.DiscardHandler)).Register(g)
	return nil
}

// actAsHost starts plugins, prints their process ids, and waits to be killed.
func actAsHost() {
	h, err := New(Options{})
	if err != nil {
		panic(err)
	}
	// The race detector would sleep for a second at exit.
	dir, err := os.MkdirTemp("", "host-*")
	if err != nil {
		panic(err)
	}
	plugin := scripted(dir, "env GORACE=atexit_sleep_ms=0 '"+h.self+"' plugin")
	for range 3 {
		p, err := h.Start(context.Background(), Spec{Kind: sdk.KindSample, Use: "echo", Block: "echo", Program: plugin})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.current.process.running.ID(), socketDir(p))
	}
	_ = os.RemoveAll(dir)
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

// scripted returns a program in a folder that executes a command.
func scripted(dir, command string) *program.Program {
	path := filepath.Join(dir, program.Prefix+"test")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec "+command+"\n"), 0o755); err != nil {
		panic(err)
	}
	p, err := program.At(path)
	if err != nil {
		panic(err)
	}
	if p.Allow.Read, err = executables(); err != nil {
		panic(err)
	}
	return &p
}

// executables returns the programs that test scripts execute in addition to the system's.
func executables() ([]string, error) {
	self, err := os.Executable()
	return []string{self}, err
}

// acting returns a program that acts as the test binary does with an argument: see TestMain.
func acting(t testing.TB, how string) *program.Program {
	t.Helper()
	return scripted(t.TempDir(), "'"+self(t)+"' "+how)
}

type echoConfig struct {
	Token string        `config:"token,secret" doc:"A secret."`
	Delay time.Duration `config:"delay" doc:"How long a batch takes."`
	Dir   sdk.Path      `config:"dir" doc:"Where crashes are counted."`
	K     int           `config:"k" default:"3" doc:"A number below 100."`
}

var holding []byte

var testPlugin = sdk.Plugin{Name: "test", Version: "0.1.0", Stages: []sdk.Stage{
	sdk.SampleStage("echo", "Does what the text says.", func(_ context.Context, s sdk.Setup, c echoConfig) (sdk.Sampler, error) {
		if c.K >= 100 {
			return nil, errors.Join(&sdk.ArgumentError{Argument: "k", Err: errors.New("too large for " + c.Token)}, errors.New("sorry"))
		}
		s.Log.Info("opened with " + c.Token)
		return &echo{config: c, setup: s}, nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates), sdk.Validates(func(c echoConfig) error {
		if c.Delay > time.Hour {
			return &sdk.ArgumentError{Argument: "delay", Err: errors.New("nobody waits so long for " + c.Token)}
		}
		return nil
	})),
	sdk.SampleStage("hog", "Holds much before it is open.", func(ctx context.Context, _ sdk.Setup, _ struct{}) (sdk.Sampler, error) {
		holding = make([]byte, 256<<20)
		for i := 0; i < len(holding); i += 4096 {
			holding[i] = 1
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}),
	sdk.SampleStage("chooser", "Says what it has chosen.", func(_ context.Context, _ sdk.Setup, c chooserConfig) (sdk.Sampler, error) {
		if c.Precision == "" {
			c.Precision = fmt.Sprint("chosen by ", os.Getpid())
		}
		return &chooser{c}, nil
	}, sdk.Reads(sdk.ColumnText)),
	sdk.ElectStage("elect", "Elects.", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return elector{}, nil }),
	sdk.PromptStage("prompt", "Writes prompts.", func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) { return prompter{}, nil },
		sdk.Reads(sdk.ColumnText)),
	sdk.EnrichStage("place", "Says where a passage stands.", func(context.Context, sdk.Setup, struct{}) (sdk.Enricher, error) { return placer{}, nil }),
	sdk.EmbedStage("length", "Embeds the length.", func(_ context.Context, s sdk.Setup, _ struct{}) (sdk.Embedder, error) {
		learnt, err := os.ReadFile(filepath.Join(s.StateDir, "learnt"))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return &lengths{dir: s.StateDir, state: string(learnt)}, err
	}, sdk.Fits(sdk.ColumnText)),
	sdk.StoreStage("memory", "Keeps entries in a file.", func(_ context.Context, s sdk.Setup, c memoryConfig) (sdk.Store, error) {
		m := newMemory(s.StateDir)
		m.theirs = c.Collection
		return m, nil
	}, sdk.Attaches("collection")),
}}

// echo does what the text of an item requests.
type echo struct {
	config echoConfig
	setup  sdk.Setup
	calls  atomic.Int64
}

func (e *echo) Fingerprint() string { return "echo-1" }

func (e *echo) Close() error {
	if e.config.Dir != "" {
		return os.WriteFile(filepath.Join(string(e.config.Dir), "closed"), nil, 0o600)
	}
	return nil
}

// times counts in a file, which survives a crash.
func (e *echo) times(what string) int {
	name := filepath.Join(string(e.config.Dir), what)
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	_, _ = f.WriteString(".")
	info, err := os.Stat(name)
	if err != nil {
		panic(err)
	}
	return int(info.Size())
}

func (e *echo) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	e.calls.Add(1)
	out := make([][]sdk.Sample, len(b.Items))
	failed := sdk.RowErrors{}
	if e.config.Delay > 0 {
		select {
		case <-time.After(e.config.Delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for i, it := range b.Items {
		answer := it.Text
		switch what, _, _ := strings.Cut(it.Text, " "); what {
		case "crash-once":
			if e.times("crash-once") == 1 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		case "crash":
			e.times("crash")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "worn": // it has answered another request before
			if e.calls.Load() > 1 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		case "stop-once":
			if e.times("stop-once") == 1 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		case "shout": // on the real standard output, which go-plugin has replaced
			_, _ = os.NewFile(1, "stdout").WriteString(strings.Repeat("o", 1<<20) + "\n")
		case "panic":
			panic("out of cheese")
		case "panic-aside":
			go func() { panic("out of cheese, aside") }()
			select {}
		case "exit":
			fmt.Fprintln(os.Stderr, "no more cheese")
			os.Exit(3)
		case "stop":
			e.times("stopping")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			select {} // the signal may take effect late
		case "deaf":
			if e.config.Dir != "" {
				e.times("deaf")
			}
			time.Sleep(time.Minute)
		case "wait":
			e.times("waiting")
			<-ctx.Done()
			e.times("cancelled")
			return nil, ctx.Err()
		case "fail":
			failed[i] = sdk.Transient(errors.New("busy with "+e.config.Token), time.Second)
		case "broken":
			failed[i] = errors.New("no idea")
		case "tell":
			fmt.Fprintln(os.Stderr, "my token is", e.config.Token)
			e.setup.Log.Warn("token", "value", `"`+e.config.Token)
		case "lease": // the process ends during the call
			if _, err := e.setup.Host.Acquire(ctx, sdk.Call{Endpoint: "http://" + e.config.Token + ".example"}); err != nil {
				return nil, err
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "cache":
			key := sdk.KeyOf("a question")
			if err := e.setup.Host.CachePut(ctx, key, []byte("an answer")); err != nil {
				return nil, err
			}
			values, err := e.setup.Host.CacheGet(ctx, []sdk.Key{key, {}})
			if err != nil || values[1] != nil {
				return nil, errors.Join(err, fmt.Errorf("the cache has %q", values))
			}
			answer = string(values[0])
		case "environment":
			answer = strings.Join(os.Environ(), "\n")
		case "certificates":
			read, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
			if err != nil {
				return nil, err
			}
			answer = string(read)
		case "get":
			reply, err := http.Get(strings.TrimPrefix(it.Text, "get ")) //nolint:noctx // as a plugin's author may write it
			if err != nil {
				return nil, err
			}
			said, err := io.ReadAll(reply.Body)
			if err := errors.Join(err, reply.Body.Close()); err != nil {
				return nil, err
			}
			answer = string(said)
		case "pid":
			answer = fmt.Sprint(os.Getpid())
		case "hold", "keep": // a number of MiB, until the process ends
			var mib int
			_, _ = fmt.Sscan(strings.TrimPrefix(it.Text, what), &mib)
			holding = make([]byte, mib<<20)
			for i := 0; i < len(holding); i += 4096 {
				holding[i] = 1
			}
			if what == "hold" {
				<-ctx.Done()
			}
		case "fill": // a number of files of one MiB in its own folder, until the process ends
			var files int
			_, _ = fmt.Sscan(strings.TrimPrefix(it.Text, what), &files)
			for i := range files {
				if err := os.WriteFile(filepath.Join(os.TempDir(), fmt.Sprint("fill", i)), make([]byte, 1<<20), 0o600); err != nil {
					return nil, err
				}
			}
			<-ctx.Done()
		case "crowd": // a number of children, until the process ends
			var children int
			_, _ = fmt.Sscan(strings.TrimPrefix(it.Text, what), &children)
			for range children {
				if err := exec.Command("sleep", "60").Start(); err != nil {
					return nil, err
				}
			}
			<-ctx.Done()
		case "gc":
			answer = fmt.Sprint(debug.SetGCPercent(400))
		case "child":
			cmd := exec.Command("sleep", "60")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			answer = fmt.Sprint(cmd.Process.Pid)
		}
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: answer, Weight: float64(len(it.Candidates))}}}}
		if it.Text == "negative" {
			out[i][0].Answers[0].Weight = -7
		}
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

type chooserConfig struct {
	Precision string `config:"precision" doc:"Of the numbers."`
}

// chooser answers with the value of an argument that it chose itself.
type chooser struct{ config chooserConfig }

func (c *chooser) Resolved() map[string]any { return map[string]any{"precision": c.config.Precision} }

func (c *chooser) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	if b.Items[0].Text == "crash" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return [][]sdk.Sample{{{Answers: []sdk.Answer{{Label: c.config.Precision}}}}}, nil
}

type elector struct{}

func (elector) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	out := make([]sdk.Verdict, len(b.Items))
	for i, it := range b.Items {
		if len(it.Samples) > 0 {
			out[i] = sdk.Verdict{Answer: it.Samples[0].Answers[0].Label, Agreement: 1}
		}
	}
	return out, nil
}

type placer struct{}

func (placer) Fingerprint() string { return "place-1" }

func (placer) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	out := make([]sdk.Addition, len(passages))
	for i, p := range passages {
		out[i] = sdk.Addition{Context: fmt.Sprint(p.Document.ID, " from ", p.Start), Terms: strings.Fields(p.Text())}
	}
	return out, nil
}

type prompter struct{}

func (prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	out := make([][]sdk.Prompt, len(b.Items))
	for i, it := range b.Items {
		out[i] = []sdk.Prompt{{Text: "label of: " + it.Text}}
		if it.Text == "huge" {
			out[i][0].Text = strings.Repeat("x", wire.MaxMessage)
		}
	}
	return out, nil
}

// lengths is an embedder that must be fitted: its vectors are the lengths of the text and of the
// state.
type lengths struct{ dir, state string }

func (l *lengths) Dimension() int { return 2 }
func (l *lengths) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	learnt := ""
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			if row.Text == "crash" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		learnt += fmt.Sprint(len(batch), ";")
	}
	l.state = learnt
	return os.WriteFile(filepath.Join(l.dir, "learnt"), []byte(learnt), 0o600)
}

func (l *lengths) Embed(_ context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if t == "crash" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		x, y := float64(len(t)), float64(len(l.state))
		if norm := math.Hypot(x, y); norm > 0 {
			x, y = x/norm, y/norm
		}
		out[i] = []float32{float32(x), float32(y)}
	}
	return out, nil
}

// patience is how long a test waits for something that should take a moment: the machine may be busy.
const patience = 30 * time.Second

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	_, state, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(state, "Z")
}
