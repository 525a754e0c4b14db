package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/host/memory"
	"github.com/racflow/racflow/engine/host/replay"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk/support"
)

// Options are what New needs.
type Options struct {
	// Self is the binary that serves the built-in stages where the environment has
	// wire.CookieKey and wire.StageKey; its arguments are for people who list
	// processes. Empty: the running one.
	Self string
	// StateDir is where descriptions of plugins are kept; empty: nowhere. What is
	// made below it is for its owner alone.
	StateDir string
	// Log gets what plugins log, with the attribute "stage"; nil: nothing.
	Log *slog.Logger
	// StartTimeout is how long a process may take until it answers; 0: 30 s.
	// The time that a stage takes to open is not part of it.
	StartTimeout time.Duration
	// StopTimeout is how long a process that was asked to end may take; 0: 500 ms.
	StopTimeout time.Duration
	// Debugging is called before a stage is opened that a debugger looks at (Spec.Debug), with the
	// id of its process, and returns when the stage may go on, or an error to give it up; nil: it
	// goes on at once.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Restarted is called when a process that ended, and why, has been started again; may be nil.
	Restarted func(stage, why string)
}

// Host starts plugin processes and ends them all with Close.
type Host struct {
	options Options
	limits  limits
	id      *identity
	shared  services
	secrets redact.Secrets
	replays replay.Files
	memory  *memory.Watch
	sockets string // folder in which the host's own is made
	temp    string // the host's own, for sockets and what else ends with it; empty: not made yet
	forget  func() // removes it

	ctx       context.Context // ends with Close
	end       context.CancelFunc
	mu        sync.Mutex
	closed    bool
	total     memory.Bound // of all processes together
	processes map[*Process]bool
}

// limits are the times and counts of supervision; tests shorten them.
type limits struct {
	start        time.Duration // until the process answers
	describe     time.Duration // until it has said what it offers, when only that is asked
	stop         time.Duration // for a process that was asked to end
	healthEvery  time.Duration
	healthWithin time.Duration   // then it counts as stopped
	backoff      support.Backoff // before a restart
	restarts     int             // attempts to start one anew
	ends         int             // in a row, without an answer between them
	attempts     int             // of one request, each but the first alone
	deaf         time.Duration   // for a request whose time is over to be given up
}

// ErrClosed says that the host or the process has been closed.
var ErrClosed = errors.New("the stage's process has been stopped")

// New makes a host. It starts no process.
func New(o Options) (*Host, error) {
	if o.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running binary: %w", err)
		}
		o.Self = self
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 500 * time.Millisecond
	}
	id, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	h := &Host{
		options: o, id: id, shared: services{identity: id}, sockets: socketFolder(), processes: map[*Process]bool{},
		limits: limits{
			start: o.StartTimeout, describe: 10 * time.Second, stop: o.StopTimeout,
			healthEvery: 5 * time.Second, healthWithin: 10 * time.Second,
			backoff: support.Backoff{First: 50 * time.Millisecond, Max: 5 * time.Second}, restarts: 5, attempts: 3,
			// A batch of 256 rows whose first row ends the process ends it 11 times
			// before that row stands alone, and four batches may do so at once: that
			// says nothing of the stage yet. Twice as often does.
			ends: 64,
			deaf: 5 * time.Second,
		},
	}
	h.memory = memory.NewWatch(func(err error) { o.Log.Warn(err.Error()) })
	h.ctx, h.end = context.WithCancel(context.Background())
	return h, nil
}

// socketFolder is the folder for temporary files, unless the path of a socket
// in it would be longer than a socket's address may be (104 bytes): below it are the host's own,
// that of a process, and the socket.
func socketFolder() string {
	if dir := os.TempDir(); len(dir) <= 32 {
		return dir
	}
	return "/tmp"
}

// Secrets are those that are replaced in all that plugins say.
func (h *Host) Secrets() *redact.Secrets { return &h.secrets }

// Close ends all processes, within a second, and every call on them.
func (h *Host) Close() {
	h.mu.Lock()
	if !h.closed {
		defer h.memory.Close()
	}
	h.closed = true
	running := make([]*Process, 0, len(h.processes))
	for p := range h.processes {
		running = append(running, p)
	}
	h.mu.Unlock()
	h.end()
	var all sync.WaitGroup
	for _, p := range running {
		all.Go(func() { _ = p.Close() })
	}
	all.Wait()
	h.shared.close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.temp != "" {
		h.forget()
	}
}

// temporary returns the host's own folder.
func (h *Host) temporary() (dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", ErrClosed
	}
	if h.temp == "" {
		h.temp, h.forget, err = private.Temp(h.sockets)
	}
	return h.temp, err
}

// Scratch makes a folder that stands in for one that cannot be written. It ends with the host.
func (h *Host) Scratch() (string, error) {
	dir, err := h.temporary()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "state")
}

// Failed is why a stage's process is not started any more, so that each of its requests fails; nil: there
// is no such process.
func (h *Host) Failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.processes {
		p.mu.Lock()
		failed := p.failed
		p.mu.Unlock()
		if failed != nil && !errors.Is(failed, ErrClosed) {
			return failed
		}
	}
	return nil
}

func (h *Host) add(p *Process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.processes[p] = true
	return nil
}

func (h *Host) remove(p *Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.processes, p)
}
