package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk/wire"
)

// launch says which process to start and how.
type launch struct {
	program *program.Program // nil: the built-in stages
	name    string           // of a built-in stage, for people who list processes
	network bool
	// Of a third party's:
	stateDir string   // that it may change; empty: none
	paths    []string // that it may read
	services bool     // it gets the engine's
	memory   int64    // bytes that it and all that it starts may hold; 0: any
	out      *output

	environment []string      // beside what every plugin gets
	start       time.Duration // until it answers; 0: the host's
}

// process is a program that runs and has passed the handshake.
type process struct {
	hash    string // of a third party's program
	running *runningProcess
	client  *plugin.Client
	conn    *grpc.ClientConn
}

// spawn starts a process and waits until it answers.
func (h *Host) spawn(ctx context.Context, l launch) (*process, error) {
	marks, path, hash := []string{"PLUGIN_CLIENT_CERT=" + h.id.authority}, h.options.Self, ""
	if l.program == nil {
		marks = append(marks, wire.StageKey+"="+l.name)
	} else {
		checked, err := l.program.Check()
		if err != nil {
			return nil, err
		}
		hash = checked
		path = l.program.Path
	}
	temp, err := h.temporary()
	if err != nil {
		return nil, err
	}
	within := cmp.Or(l.start, h.limits.start)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it was not ready within %v", within))
	defer cancel()
	running := newRunningProcess(path, l.out)
	if l.program == nil {
		running.shown = h.id.builtin
	}
	var sockets string
	config := h.id.dialing.Clone() // go-plugin makes a plugin's certificate the only one that it trusts
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         plugin.PluginSet{},
		RunnerFunc: func(_ hclog.Logger, offered *exec.Cmd, dir string) (runner.Runner, error) {
			sockets = dir
			next, err := h.prepare(ctx, l, dir)
			if err != nil {
				return nil, err
			}
			next.cmd.Env = slices.Concat(next.cmd.Env, offered.Env, marks, l.environment)
			running.set(next)
			h.bounded(running, l.memory, l.name)
			return running, nil
		},
		TLSConfig:        config,
		StartTimeout:     Forever, // ours is ctx
		SyncStdout:       l.out.lines("stdout"),
		SyncStderr:       l.out.lines("stderr"),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions:  wire.DialOptions(),
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: temp},
	})
	c := &process{hash: hash, running: running, client: client}
	stop := context.AfterFunc(ctx, func() {
		running.fail(context.Cause(ctx))
		_ = running.Kill(ctx)
	})
	connected, err := client.Client()
	if !stop() || err != nil {
		c.kill()
		_ = os.RemoveAll(sockets)
		return nil, c.explain(err)
	}
	c.conn = connected.(*plugin.GRPCClient).Conn
	return c, nil
}

// explain says why a process did not start, with its exit status and its last
// words.
func (c *process) explain(err error) error {
	reason := c.running.failure()
	if reason == nil {
		reason = errors.New(c.running.out.secrets.Message(err.Error()))
	}
	if !c.running.started() {
		return reason
	}
	select {
	case <-c.running.exited:
		if c.running.exit.Signal == 0 {
			reason = fmt.Errorf("%w (exit status %d)", reason, c.running.exit.Status)
		}
	default:
	}
	return fmt.Errorf("%w%s", reason, c.running.out.tail())
}

// stop asks the process to end and kills it if it has not after grace.
func (c *process) stop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	go func() {
		// go-plugin's own client waits for an answer without a deadline.
		if isUnimplemented(c.conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{})) {
			cancel()
		}
	}()
	select {
	case <-c.running.exited:
	case <-ctx.Done():
	}
	c.kill()
}

// shutdownMethod is go-plugin's, by which a process is asked to end.
const shutdownMethod = "/plugin.GRPCController/Shutdown"

func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// kill ends the process at once. Only then may go-plugin clean up after it: it
// would wait for a process that has stopped.
func (c *process) kill() {
	_ = c.running.Kill(context.Background())
	cleaned := make(chan struct{})
	go func() {
		if c.running.started() {
			<-c.running.exited
		}
		c.client.Kill()
		close(cleaned)
	}()
	select {
	case <-cleaned:
	case <-time.After(time.Second): // a process in the depths of the kernel
	}
}
