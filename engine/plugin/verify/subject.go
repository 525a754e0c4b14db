package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk/conformance"
)

// subject is a stage in processes of its own.
type subject struct {
	*conformance.Subject
	program *program.Program
	dir     string
	secrets []string
	rows    int

	mu      sync.Mutex
	running map[*conformance.Process]*running
}

// running is one process, with a host of its own, so that what it writes is known by check.
type running struct {
	*host.Process
	said *said
}

// start is the Starter of the suite.
func (v *subject) start(ctx context.Context, setup conformance.Setup) (*conformance.Process, error) {
	said := &said{pass: setup.Log}
	h, err := host.New(host.Options{StateDir: v.dir, Log: slog.New(said), StopTimeout: v.Options.Promptly})
	if err != nil {
		return nil, err
	}
	use := v.Stage.Name
	if v.program != nil {
		use = v.program.Name + "/" + v.Stage.Name
	}
	p, err := h.Start(ctx, host.Spec{
		Kind: v.Stage.Kind, Use: use, Block: "verify", Config: json.RawMessage(setup.Config), Secrets: v.secrets,
		StateDir: setup.StateDir, Samples: setup.Samples, Network: v.Stage.Network, Program: v.program,
	})
	if err != nil {
		h.Close()
		if refused := new(host.ConfigError); errors.As(err, &refused) {
			var all []error
			for _, e := range refused.Errors {
				all = append(all, e)
			}
			return nil, errors.Join(all...)
		}
		return nil, err
	}
	c := &conformance.Process{Stage: p.Stage, Fingerprint: p.Fingerprint(), Close: sync.OnceFunc(func() { _ = p.Close(); h.Close() })}
	v.mu.Lock()
	v.running[c] = &running{p, said}
	v.mu.Unlock()
	return c, nil
}

// load starts the stage with work for it.
func (v *subject) load(t conformance.T) (*conformance.Load, *running, error) {
	l, err := conformance.NewLoad(t, v.Subject)
	if err != nil {
		return nil, nil, err
	}
	return l, v.of(l.Process()), nil
}

func (v *subject) of(p *conformance.Process) *running {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.running[p]
}

// starts is the first check: without it there is nothing to check.
var starts = conformance.Check{
	Name: "starts", Within: conformance.Long,
	Why: "The engine starts the program, reads one line of handshake from it, and configures the stage.",
	Fix: "Begin with serve.Plugin (in Python, racflow_plugin.serve), print to standard error only, and accept the config.",
	Run: func(t conformance.T, s *conformance.Subject) error {
		_, err := s.Open(t, s.Setup(t))
		return err
	},
}

// said is what a process wrote: a slog.Handler that counts lines and passes them on.
type said struct {
	pass func(string)
	mu   sync.Mutex
	seen struct {
		lines, bytes int
		stdout       []string
	}
}

func (s *said) Enabled(context.Context, slog.Level) bool { return true }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	toStdout := false
	r.Attrs(func(a slog.Attr) bool {
		toStdout = toStdout || a.Key == "stream" && a.Value.String() == "stdout"
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	s.mu.Lock()
	s.seen.lines++
	s.seen.bytes += len(line)
	if toStdout && len(s.seen.stdout) < 3 {
		s.seen.stdout = append(s.seen.stdout, r.Message)
	}
	s.mu.Unlock()
	if s.pass != nil {
		s.pass(line)
	}
	return nil
}

func (s *said) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *said) WithGroup(string) slog.Handler { return s }

// soFar is what was written until now.
func (s *said) soFar() (lines, bytes int, stdout []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.lines, s.seen.bytes, s.seen.stdout
}
