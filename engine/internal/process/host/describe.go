package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// prepared is a process that is ready to start.
type prepared struct {
	cmd     *exec.Cmd // its environment holds only the variables passed on from racflow's
	control *confine.Control
	limits  memory.Limits
	close   func() // releases the resources opened for the process, after it has ended
}

// prepare prepares a process that listens on a socket in the folder sockets.
func (h *Host) prepare(ctx context.Context, l launch, sockets string) (prepared, error) {
	if l.program != nil {
		return h.foreign(ctx, l, sockets)
	}
	// Not CommandContext: a context bounds the start, and the process outlives it.
	cmd := exec.Command(h.self, "plugin", l.name) //nolint:noctx
	cmd.Env = environment(os.Environ(), l.network)
	return prepared{cmd: cmd, control: confine.Plain(cmd), close: func() {}}, nil
}

// foreign prepares a process of a third-party program. The process can reach what the pipeline file
// allows, and temporary folders of its own.
func (h *Host) foreign(ctx context.Context, l launch, sockets string) (p prepared, err error) {
	allow := l.program.Allow
	command, needs, err := confine.Interpreter(ctx, l.program.Path)
	if err != nil {
		return p, err
	}
	temp, err := h.temporary()
	if err != nil {
		return p, err
	}
	own, err := os.MkdirTemp(temp, "own")
	if err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(own)
		}
	}()
	policy := confine.Policy{
		Home: filepath.Join(own, "home"), Work: filepath.Join(own, "work"), Temp: filepath.Join(own, "tmp"),
		Sockets: sockets, Unconfined: allow.Unconfined || !confine.Supported, Remove: []string{own, sockets},
		Read: slices.Concat(allow.Read, l.paths, needs, []string{l.program.Folder}), Write: slices.Concat(allow.Write, []string{l.stateDir, os.Getenv("GOCOVERDIR")}),
	}
	for _, dir := range []string{policy.Home, policy.Work, policy.Temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return p, err
		}
	}
	if l.services {
		if policy.Services, err = h.shared.open(temp); err != nil {
			return p, err
		}
	}
	p.close = func() { _ = os.RemoveAll(own) }
	if len(allow.Hosts) > 0 && !policy.Unconfined {
		passing, err := confine.NewProxy(l.program.Name, allow.Hosts, func(advice string) { l.out.log.Warn(l.out.secrets.Message(advice)) })
		if err != nil {
			return p, err
		}
		policy.Network, policy.Proxy, policy.Local = true, passing, confine.Loopback(allow.Hosts)
		p.close = func() { _ = errors.Join(passing.Close(), os.RemoveAll(own)) }
	}
	passed := environment(os.Environ(), l.network)
	if !policy.Unconfined {
		passed = confinedEnvironment(os.Environ(), &policy) // before Command gets the policy, because confinedEnvironment adds to it
		p.limits = memory.Limits{
			Processes: h.limits.threads, Disk: memory.Bound{Bytes: cmp.Or(allow.Disk, program.DefaultDisk), Of: "disk of the plugin " + l.program.Name},
			Used: func() int64 { return confine.Used(policy.Home, policy.Work, policy.Temp, l.stateDir) },
		}
		policy.Processes, policy.Disk = p.limits.Processes, p.limits.Disk.Bytes
	}
	if p.cmd, p.control, err = confine.Command(h.self, policy, command[0], command[1:]...); err != nil {
		p.close()
		return prepared{}, err
	}
	p.cmd.Env = passed
	return p, nil
}

// Forever is the time limit while a debugger is attached: ten years.
const Forever = 10 * 365 * 24 * time.Hour

// debugged changes how a process starts so that a debugger can attach to it.
func (l *launch) debugged() {
	if l.program != nil {
		p := *l.program
		p.Allow.Unconfined = true
		l.program = &p
	}
	l.environment = append(l.environment, support.NoDumpVariable+"=1")
	l.start = Forever
}

// awaitDebugger blocks before the stage opens, until Options.Debugging returns.
func (p *Process) awaitDebugger(ctx context.Context, c *process) error {
	if p.host.options.Debugging == nil {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.running.exited:
			cancel()
		case <-waiting.Done():
		}
	}()
	err := p.host.options.Debugging(waiting, p.name(), c.running.plugin())
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return errors.New("the process ended before a debugger was attached")
	}
	return err
}

// Attached blocks until a debugger traces a process. Only Linux reports that.
func Attached(ctx context.Context, pid int) error {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return fmt.Errorf("see whether a debugger is attached: %w", err)
		}
		_, tracer, _ := strings.Cut(string(status), "\nTracerPid:\t")
		if tracer != "" && !strings.HasPrefix(tracer, "0\n") {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Describe asks a third-party plugin which stages it offers. It stores the answer under the hash of
// the program, so that each program starts only once for this; see Known. It ends a program that
// does not answer in time.
func (h *Host) Describe(ctx context.Context, from program.Program) (sdk.Plugin, error) {
	if p, ok := h.Known(from); ok {
		return p, nil
	}
	reply := &stagepb.DescribeReply{}
	if err := h.ask(ctx, from, "describe itself", stagepb.Stage_Describe_FullMethodName, &stagepb.DescribeRequest{}, reply); err != nil {
		return sdk.Plugin{}, err
	}
	p, err := wire.DecodePlugin(reply)
	if err != nil {
		return sdk.Plugin{}, fmt.Errorf("the plugin %s: %w", from.Path, err)
	}
	if path, ok := h.description(from); ok {
		if err := writeDescription(path, reply); err != nil {
			h.options.Log.Warn("a plugin's description could not be kept", "error", err)
		}
	}
	return p, nil
}

// Validate asks a third-party plugin whether one of its stages accepts a config, which includes the
// stage's secrets. It returns joined ArgumentErrors, or the reason why it could not ask the plugin.
func (h *Host) Validate(ctx context.Context, from program.Program, kind sdk.Kind, name string, config []byte) error {
	reply, request := &stagepb.ValidateReply{}, &stagepb.ValidateRequest{Kind: wire.EncodeKind(kind), Name: name, ConfigJson: config}
	if err := h.ask(ctx, from, "check its config", stagepb.Stage_Validate_FullMethodName, request, reply); err != nil {
		return err
	}
	var errs []error
	for _, e := range wire.DecodeArgumentErrors(reply.GetErrors()) {
		e.Err = errors.New(h.secrets.Shown(e.Err.Error()))
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// ask starts a third-party plugin for one call. It ends a program that does not answer in time.
func (h *Host) ask(ctx context.Context, from program.Program, what, method string, request, reply proto.Message) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limits.describe, fmt.Errorf("it did not answer within %v", h.limits.describe))
	defer cancel()
	out := &output{log: h.options.Log.With("plugin", filepath.Base(from.Path)), secrets: &h.secrets}
	c, err := h.spawn(ctx, launch{program: &from, out: out})
	if err != nil {
		return fmt.Errorf("the plugin %s did not start: %w", from.Path, err)
	}
	defer c.stop(h.limits.stop)
	if err := c.call(ctx, method, request, reply); err != nil {
		return fmt.Errorf("the plugin %s did not %s: %s%s", from.Path, what, h.secrets.Message(c.failed(err, h.limits.stop).Error()), out.tail())
	}
	return nil
}

// Known returns the answer that Describe has stored for a program, without starting anything.
func (h *Host) Known(from program.Program) (sdk.Plugin, bool) {
	path, ok := h.description(from)
	if !ok {
		return sdk.Plugin{}, false
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return sdk.Plugin{}, false
	}
	reply := &stagepb.DescribeReply{}
	if err := protojson.Unmarshal(raw, reply); err != nil {
		return sdk.Plugin{}, false // Describe then asks again and overwrites the file
	}
	p, err := wire.DecodePlugin(reply)
	return p, err == nil
}

// description returns the path of the file that stores a program's answer to Describe.
func (h *Host) description(from program.Program) (string, bool) {
	hash, err := from.Check()
	if h.options.StateDir == "" || err != nil {
		return "", false
	}
	return filepath.Join(h.options.StateDir, "plugins", strings.ReplaceAll(hash, ":", "-")+".json"), true
}

func writeDescription(path string, reply *stagepb.DescribeReply) error {
	raw, err := protojson.MarshalOptions{Multiline: true}.Marshal(reply)
	if err != nil {
		return err
	}
	if err := disk.MakeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return disk.WriteFile(path, raw, false)
}

// Package engine/internal/plugin/verify uses the following methods to check how a plugin behaves.
// After they end a process, the host restarts it as after any other end.

// PID returns the system's process id of the current process.
func (p *Process) PID() int { return p.now().process.running.plugin() }

// Kill kills the current process without notice, as the system would, and waits until it has ended.
func (p *Process) Kill(ctx context.Context) error {
	running := p.now().process.running
	_ = running.Kill(ctx)
	select {
	case <-running.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Alive reports whether the process answers a health check before ctx ends.
func (p *Process) Alive(ctx context.Context) bool {
	_, ok := p.now().conn.Alive(ctx)
	return ok
}

// HangUp closes the process's standard input, as happens when racflow ends, and waits until the process has ended.
func (p *Process) HangUp(ctx context.Context) error {
	now := p.now()
	if err := now.process.running.lifeline.Close(); err != nil {
		return err
	}
	return now.process.leaves(ctx, nil)
}

// Shutdown asks the process to end and waits until it has. Unlike Close, it does not kill a process
// that keeps running.
func (p *Process) Shutdown(ctx context.Context) error {
	now := p.now()
	refused := make(chan error, 1)
	go func() {
		// A process may end before it replies: that is success.
		if err := now.process.conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{}); isUnimplemented(err) {
			refused <- errors.New("it has no method " + shutdownMethod)
		}
	}()
	return now.process.leaves(ctx, refused)
}

// leaves waits until the process has ended by itself.
func (c *process) leaves(ctx context.Context, refused <-chan error) error {
	select {
	case <-c.running.exited:
		return c.running.failure() // non-nil: racflow had to end it
	case err := <-refused:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Process) now() instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}
