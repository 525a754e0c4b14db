package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// The test binary is a plugin if it has the name of one.
func TestMain(m *testing.M) {
	name, isPlugin := strings.CutPrefix(filepath.Base(os.Args[0]), program.Prefix)
	if !isPlugin {
		os.Exit(m.Run())
	}
	offered := sdk.Plugin{Name: name, Version: "0.1.0"}
	for _, fault := range faults {
		offered.Stages = append(offered.Stages, voter(fault))
	}
	switch name {
	case "garbage":
		fmt.Println("hello, I am a spreadsheet")
		time.Sleep(time.Minute)
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(7)
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "alone": // go-plugin without package serve
		server := serve.NewServer(offered, slog.New(slog.DiscardHandler))
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig: wire.Handshake(), Plugins: plugin.PluginSet{"stage": registrar{server: server}}, Logger: hclog.NewNullLogger(),
			GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(o...) },
		})
	default:
		serve.Plugin(offered)
	}
}

type registrar struct {
	plugin.NetRPCUnsupportedPlugin
	server *serve.Server
}

func (r registrar) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	r.server.Register(g)
	return nil
}

func (registrar) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

// faults lists the faults of the plugin's stages, one per stage.
var faults = []string{"good", "changing", "crowded", "stops", "deaf", "talks", "prints", "leaks", "locks", "lingers", "poisoned"}

type settings struct {
	Label string `config:"label,required" example:"card_lost" doc:"What it votes for."`
	Token string `config:"token,secret" doc:"A secret."`
}

// faulty votes for its label, and has one fault.
type faulty struct {
	settings
	fault string

	mu      sync.Mutex
	calls   int
	crowd   chan struct{} // closed when there are too many calls at a time
	nothing [][]byte
}

func voter(fault string) sdk.Stage {
	return sdk.SampleStage(fault, "Votes for one label.", func(_ context.Context, setup sdk.Setup, c settings) (sdk.Sampler, error) {
		if fault == "locks" {
			f, err := os.OpenFile(filepath.Join(setup.StateDir, "lock"), os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return nil, err
			}
			_ = f.Close()
		}
		return &faulty{settings: c, fault: fault, crowd: make(chan struct{})}, nil
	}, sdk.Reads(sdk.ColumnText))
}

func (f *faulty) Fingerprint() string {
	if f.fault == "changing" {
		return time.Now().String() // not the process id, which is equal in every namespace
	}
	return "1"
}

func (f *faulty) Close() error {
	if f.fault == "lingers" {
		select {}
	}
	return nil
}

func (f *faulty) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	f.mu.Lock()
	if f.calls++; f.calls == 9 && f.fault == "crowded" {
		close(f.crowd)
	}
	f.mu.Unlock()
	out := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch f.fault {
		case "poisoned":
			if it.Text == "poison" && f.Token == "hunter2" {
				fmt.Fprintln(os.Stderr, "that was too much")
				os.Exit(3)
			}
		case "talks":
			fmt.Fprintln(os.Stderr, "working on", it.ID)
		case "prints":
			fmt.Println("working on", it.ID)
		case "leaks":
			f.mu.Lock()
			f.nothing = append(f.nothing, []byte(strings.Repeat("x", 64<<10)))
			f.mu.Unlock()
		}
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: f.Label, Weight: 1}}}}
	}
	switch {
	case f.fault == "stops":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {} // another thread may take the signal: no answer is to leave before the process stops
	case f.fault == "deaf" && len(b.Items) > 100:
		select {}
	case f.fault == "crowded" && len(b.Items) == 1:
		<-f.crowd // 256 calls come at a time
		return nil, errors.New("too many calls")
	}
	return out, nil
}
