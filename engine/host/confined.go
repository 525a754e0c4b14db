package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/confine"
	"github.com/racflow/racflow/engine/confine/interpreter"
	"github.com/racflow/racflow/engine/confine/proxy"
)

// prepared is a process that is ready to be started.
type prepared struct {
	cmd     *exec.Cmd // without its environment, but for what it gets of racflow's
	control *confine.Control
	close   func() // what was opened for it, once it has ended
}

// prepare prepares a process that listens in the folder sockets.
func (h *Host) prepare(ctx context.Context, l launch, sockets string) (prepared, error) {
	if l.program != nil {
		return h.foreign(ctx, l, sockets)
	}
	// Not CommandContext: a context bounds the start, and the process outlives it.
	cmd := exec.Command(h.options.Self, "plugin", l.name) //nolint:noctx
	cmd.Env = environment(os.Environ(), l.network)
	return prepared{cmd, confine.Plain(cmd), func() {}}, nil
}

// foreign prepares a process of a third party's program. It reaches what the pipeline file allows it, and folders of its own that end with it.
func (h *Host) foreign(ctx context.Context, l launch, sockets string) (p prepared, err error) {
	allow := l.program.Allow
	command, needs, err := interpreter.Of(ctx, l.program.Path)
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
		passing, err := proxy.Listen(own, l.program.Name, allow.Hosts, func(advice string) { l.out.log.Warn(l.out.secrets.Message(advice)) })
		if err != nil {
			return p, err
		}
		policy.Network, policy.Proxy, policy.Local = true, passing.Path(), proxy.Loopback(allow.Hosts)
		p.close = func() { _ = errors.Join(passing.Close(), os.RemoveAll(own)) }
	}
	passed := environment(os.Environ(), l.network)
	if !policy.Unconfined {
		passed = confinedEnvironment(os.Environ(), &policy) // before the policy is handed over: it adds to it
	}
	if p.cmd, p.control, err = confine.Command(h.options.Self, policy, command[0], command[1:]...); err != nil {
		p.close()
		return prepared{}, err
	}
	p.cmd.Env = passed
	return p, nil
}
