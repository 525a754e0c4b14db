package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// caller adapts a Process to the calls of its Stage.
type caller struct{ *Process }

// Invoke sends a request to the current process, and again if retry.Resend decides so. It does not
// repeat a request that changes something.
func (p caller) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	answer := reply.(proto.Message)
	_, changes := changeOf(request)
	return p.send(ctx, changes, func(ctx context.Context, now instance, sent func()) error {
		if err := p.replay.before(request); err != nil {
			return sdk.Transient(p.about(err), 0) // a caller that starts over can succeed
		}
		proto.Reset(answer)
		err := now.conn.Send(ctx, sent, method, request, reply, options...)
		if err != nil {
			return err
		}
		p.hide(answer)
		p.sign(answer)
		if answer.(failing).GetFailure() == nil {
			p.replay.after(request, reply)
		}
		return nil
	})
}

// Fit streams rows to the current process. The rows can be read only once, so if the process ends
// before it answers, the caller has to start over.
func (p caller) Fit(ctx context.Context, rows iter.Seq2[*stagepb.FitRequest, error]) (reply *stagepb.FitReply, err error) {
	err = p.send(ctx, true, func(ctx context.Context, now instance, sent func()) error {
		sent()
		if reply, err = now.conn.Fit(ctx, p.waits.fed(rows)); err == nil {
			p.hide(reply)
			p.sign(reply)
		}
		return err
	})
	return reply, err
}

// send calls the current process, and again if retry.Resend decides so. changes marks a call whose
// effect is lost with the process: such a call is not sent again.
func (p caller) send(ctx context.Context, changes bool, call func(ctx context.Context, now instance, sent func()) error) (err error) {
	p.waits.begin()
	defer func() { p.waits.end(err == nil) }()
	of := ""
	if p.plugin.name != "" {
		of = p.title
	}
	return retry.Resend(ctx, of, func(ctx context.Context, sent func()) error {
		now, err := p.live(ctx)
		if err != nil {
			return err
		}
		err = call(ctx, now, sent)
		switch {
		case err == nil, errors.Is(err, wire.ErrUnsent):
			return err
		case !errors.Is(err, wire.ErrLost):
			if sdk.CodeOf(err) == sdk.CodeDeadline {
				p.settle(now)
			}
			return p.explain(err)
		}
		if err := p.await(now); err != nil {
			return err
		}
		if changes {
			return sdk.Transient(p.lost(now), 0)
		}
		worn := !wire.IsAlone(ctx) || now.conn.Answered() > now.opened
		return &retry.LostError{By: p.title, Why: now.ended.why, Innocent: now.ended.deaf.Load(), Worn: worn, Silent: now.ended.silent}
	})
}

// await waits until it is known how a process ended.
func (p *Process) await(now instance) error {
	select {
	case <-now.ended.done:
		return nil
	case <-p.ctx.Done():
		return p.about(ErrClosed)
	}
}

// by returns the prefix of the stage's errors: its name, and for a third party's stage also the
// plugin's name and version.
func (p *Process) by() string {
	if p.plugin.name != "" {
		return p.title
	}
	return p.name()
}

// sign adds by to all failures of a third party's stage, and to those failures of a built-in stage
// that are its own mistakes.
func (p *Process) sign(answer proto.Message) {
	for _, f := range failures(answer) {
		if p.plugin.name != "" || isInternal(f) {
			f.Message = p.by() + ": " + f.GetMessage()
		}
	}
}

// explain adds the stage's name to the error of a plugin that breaks the protocol, and masks secrets.
func (p *Process) explain(err error) error {
	if e := new(wire.StatusError); errors.As(err, &e) {
		e.Message = p.out.secrets.Shown(e.Message)
		return fmt.Errorf("%s: %w", p.title, e)
	}
	if errors.As(err, new(wire.SizeError)) {
		return fmt.Errorf("%s: %w", p.by(), err)
	}
	return err
}

// lost returns the error for a change during which the process ended.
func (p *Process) lost(now instance) error {
	if now.ended.deaf.Load() {
		return p.about(errRestarted)
	}
	return fmt.Errorf("%s: %w while it worked on this (%w): %s", p.title, sdk.ErrCrashed, errRestarted, now.ended.why)
}

func (p *Process) about(err error) error {
	return &sdk.Error{Code: sdk.CodeInternal, Err: fmt.Errorf("%s: %w", p.by(), err)}
}

// live returns the running process. It waits while the process is being restarted.
func (p *Process) live(ctx context.Context) (instance, error) {
	for {
		p.mu.Lock()
		now, changed, failed := p.current, p.changed, p.failed
		p.mu.Unlock()
		switch {
		case failed != nil:
			return instance{}, failed
		case p.ctx.Err() != nil:
			return instance{}, p.about(ErrClosed)
		case !now.conn.Ended():
			return now, nil
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
		case <-ctx.Done():
			return instance{}, wire.Ended(ctx)
		}
	}
}

// services is the listener for what the engine shares with stages. It opens when the first stage
// needs it.
type services struct {
	wire.HostService
	identity *identity

	mu     sync.Mutex
	dir    string
	server *grpc.Server // nil: not open
}

// share creates the address and credentials with which a process reaches h. remove revokes them.
func (s *services) share(dir string, h sdk.Host) (at *stagepb.HostAddress, remove func(), err error) {
	opened, err := s.open(dir)
	if err != nil {
		return nil, nil, err
	}
	token, remove := s.Share(h)
	return &stagepb.HostAddress{
		Address: "unix:" + filepath.Join(opened, "host"), Token: token,
		AuthorityPem: s.identity.authority, CertificatePem: s.identity.certificate, KeyPem: s.identity.key,
	}, remove, nil
}

// open opens the listener once and returns the folder of its socket.
func (s *services) open(dir string) (opened string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return s.dir, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("offer the engine's services: %w", err)
		}
	}()
	if s.dir, err = os.MkdirTemp(dir, "host"); err != nil {
		return "", err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(s.dir, "host"), Net: "unix"})
	if err != nil {
		return "", err
	}
	s.server = grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(credentials.NewTLS(s.identity.serving())))...)
	s.Register(s.server)
	go func() { _ = s.server.Serve(listener) }() // until close
	return s.dir, nil
}

func (s *services) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.Stop()
		_ = os.RemoveAll(s.dir)
	}
}

// seed is for numbers that stand for addresses and reveal nothing about them.
var seed = maphash.MakeSeed()

// sharedHost is the sdk.Host that a stage calls. It removes secrets from what the stage passes to
// the engine.
type sharedHost struct {
	sdk.Host
	secrets *redact.Secrets
}

// Acquire implements sdk.Host.
func (h sharedHost) Acquire(ctx context.Context, c sdk.Call) (func(sdk.Result), error) {
	given := c.Endpoint
	c.Endpoint = h.secrets.Message(given)
	if shown := h.secrets.Shown(given); shown != c.Endpoint { // each keeps its own limits and breaker
		c.Endpoint = fmt.Sprintf("%s %x", shown, maphash.String(seed, given))
	}
	release, err := h.Host.Acquire(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(r sdk.Result) {
		r.Reason = h.secrets.Shown(r.Reason)
		release(r)
	}, nil
}

// KeepProfile implements sdk.Host. It does not store a profile that contains a secret.
func (h sharedHost) KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error {
	for _, text := range []string{endpoint, model, string(profile)} {
		if h.secrets.Shown(text) != text {
			return nil
		}
	}
	return h.Host.KeepProfile(ctx, endpoint, model, profile)
}

// CachePut implements sdk.Host. It does not cache a value that contains a secret, so the stage asks
// the same question again later.
func (h sharedHost) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if h.secrets.InResults() && h.secrets.Result(string(value)) != string(value) {
		return nil
	}
	return h.Host.CachePut(ctx, key, value)
}

// trace holds the beginning of what a Go program writes when it panics or a signal ends it: the
// remaining output (other goroutines, registers) can be longer than the last lines that output keeps.
type trace struct {
	stack []string
	at    string // the place outside of the runtime
}

var (
	traceBegins = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)
	ownPlace    = regexp.MustCompile(`^\t(\S+\.go:\d+)`)
	inRuntime   = regexp.MustCompile(`(^|/)runtime/`)
)

// add takes the next line of standard error.
func (t *trace) add(line string) {
	if len(t.stack) == 0 && !traceBegins.MatchString(line) {
		return
	}
	if len(t.stack) < tailLines {
		t.stack = append(t.stack, line)
	}
	if place := ownPlace.FindStringSubmatch(line); place != nil && t.at == "" && !inRuntime.MatchString(place[1]) {
		t.at = place[1]
	}
}

// what returns the first line and the place; empty: there is no trace.
func (t *trace) what() string {
	switch {
	case len(t.stack) == 0:
		return ""
	case t.at == "":
		return t.stack[0]
	}
	return t.stack[0] + " at " + t.at
}

// waits counts a stage's calls in progress.
type waits struct {
	mu      sync.Mutex
	opening time.Time // when opening began; zero: the stage is open
	calls   int
	since   time.Time // time of the last answer, or of the first waiting call
}

// open notes that the stage is opening, until the caller calls opened.
func (w *waits) open() (opened func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opening = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.opening = time.Time{}
	}
}

func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == 1 {
		w.since = time.Now()
	}
}

// end notes that a call has ended, with or without an answer.
func (w *waits) end(answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	if answered {
		w.since = time.Now()
	}
}

// fed returns rows, and does not count the time that their source takes as time that the stage waits:
// enrichments may take long for each row.
func (w *waits) fed(rows iter.Seq2[*stagepb.FitRequest, error]) iter.Seq2[*stagepb.FitRequest, error] {
	return func(yield func(*stagepb.FitRequest, error) bool) {
		w.end(false)
		defer w.begin()
		for row, err := range rows {
			w.begin()
			more := yield(row, err)
			if w.end(true); !more {
				return
			}
		}
	}
}

func (w *waits) say(stage string, now time.Time, say func(progress.Wait)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.opening.IsZero():
		why := fmt.Sprintf("it has been starting for %s", now.Sub(w.opening).Round(time.Second))
		say(progress.Wait{Stage: stage, Why: why, Since: w.opening, After: progress.WaitSoon})
	case w.calls > 0:
		why := fmt.Sprintf("no answer for %s", now.Sub(w.since).Round(time.Second))
		say(progress.Wait{Stage: stage, Calls: w.calls, Why: why, Since: w.since, After: progress.WaitLate})
	}
}

// Waits reports the stages that are starting, and those that have calls in progress, with the time
// since their last answer. It is a progress.WaitSource.
func (h *Host) Waits(now time.Time, say func(progress.Wait)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.processes {
		p.waits.say(p.name(), now, say)
	}
}
