package host

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Host starts plugin processes; Close ends all of them.
type Host struct {
	options Options
	self    string // the running binary
	limits  limits
	id      *identity
	shared  services
	secrets redact.Secrets
	memory  *memory.Watch
	sockets string // parent folder of temp
	temp    string // the host's own folder, for sockets and other temporary files; empty: not made yet

	ctx       context.Context // ends with Close
	end       context.CancelFunc
	mu        sync.Mutex
	closed    bool
	total     memory.Bound // limit for all processes together
	processes map[*Process]bool
}

// BoundMemory limits the memory that racflow and all its child processes hold together. of names
// the owner of the limit in messages.
func (h *Host) BoundMemory(bytes int64, of string) {
	h.mu.Lock()
	h.total = memory.Bound{Bytes: bytes, Of: "memory of " + of}
	h.mu.Unlock()
	h.memory.Total(h.total)
}

// bounded watches a process from its start to its end.
func (h *Host) bounded(running *runningProcess, bytes int64, of string) {
	limits := running.limits
	limits.Memory = memory.Bound{Bytes: bytes, Of: "memory of " + of}
	running.begun = func(c *confine.Control) (ended func()) {
		return h.memory.Add(c.PID(), c.Kept(), limits, func(reason error) {
			running.fail(reason)
			_ = running.Kill(h.ctx)
		})
	}
	h.mu.Lock()
	total := h.total.Bytes
	h.mu.Unlock()
	if bytes == 0 || total > 0 && total < bytes {
		bytes = total
	}
	if bytes > 0 {
		// The Go runtime collects harder before the bound; the last tenth is for memory that it does not count.
		running.cmd.Env = append(running.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", bytes/10*9))
	}
}

// noBytecode stops Python from writing bytecode beside the modules that it loads: racflow refuses an
// installed plugin with more files than were locked, and root can write there whatever the permissions are.
const noBytecode = "PYTHONDONTWRITEBYTECODE=1"

// The variables of racflow's environment that a plugin sees. All others stay hidden, since they may
// hold secrets of other stages.
var (
	passed = []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOGC", "GOMAXPROCS", "GODEBUG", "GORACE", "GOCOVERDIR", models, support.NoDumpVariable, support.NoLockVariable,
	}
	passedPrefixes = []string{"XDG_", "LC_", "SSL_CERT_"}
	proxies        = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"} // also in lower case
)

// models names the variable with the folder that stores downloaded models.
const models = "RACFLOW_MODELS"

// environment selects the host's variables that a plugin gets; network adds the proxies.
func environment(all []string, network bool) []string {
	kept := []string{noBytecode}
	for _, variable := range all {
		name, _, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(passed, name) || slices.ContainsFunc(passedPrefixes, hasPrefix) ||
			network && slices.Contains(proxies, strings.ToUpper(name)) {
			kept = append(kept, variable)
		}
	}
	return kept
}

// confinedEnvironment is environment for a confined plugin: it drops variables that name folders
// which the plugin cannot read. It makes the certificate files that variables name readable.
func confinedEnvironment(all []string, policy *confine.Policy) []string {
	var kept []string
	for _, variable := range environment(all, false) {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_"):
			continue // the plugin gets folders of its own
		case name == models && !slices.ContainsFunc(slices.Concat(policy.Read, policy.Write), func(dir string) bool { return isBelow(value, dir) }):
			continue
		case strings.HasPrefix(name, "SSL_CERT_"):
			policy.Read = append(policy.Read, filepath.SplitList(value)...)
		}
		kept = append(kept, variable)
	}
	return kept
}

// isBelow reports whether a path is the folder dir or lies in it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

// Options configure New.
type Options struct {
	// Builtin is the plugin that the running binary serves if the environment has wire.CookieKey and
	// wire.StageKey. If it has no name, each process is asked.
	Builtin sdk.Plugin
	// StateDir stores descriptions of plugins; empty: they are not stored. Folders below it are
	// accessible to their owner only.
	StateDir string
	// Log receives the log lines of plugins, with the attribute "stage"; nil: nothing.
	Log *slog.Logger
	// StopTimeout limits how long a process may run after it was asked to end; 0: 500 ms.
	StopTimeout time.Duration
	// Debugging is called with the process id of a stage with Spec.Debug before the stage opens, so
	// that a debugger can attach. If the call returns nil, the stage opens; if an error, the stage
	// fails. If Debugging is nil, the stage opens at once.
	Debugging func(ctx context.Context, stage string, pid int) error
	// Restarted is called after a process has been restarted; why says how the old one ended. May be nil.
	Restarted func(stage, why string)
}

// limits are the times and counts of supervision; tests shorten them.
type limits struct {
	start        time.Duration // until the process answers, without the time that its stage takes to open
	describe     time.Duration // until a process that starts only for Describe or Validate has answered
	stop         time.Duration // until a process ends after it was asked to
	healthEvery  time.Duration
	healthWithin time.Duration   // a process that gives no answer within this time hangs
	backoff      support.Backoff // before a restart
	restarts     int             // attempts to restart a process
	ends         int             // ends in a row, without an answer between them
	deaf         time.Duration   // until a process that ignores the end of a request is replaced
	threads      int             // maximum number of processes and threads of a confined plugin
}

// ErrClosed says that the host or the process has been closed.
var ErrClosed = errors.New("the stage's process has been stopped")

// New creates a host. It starts no process.
func New(o Options) (*Host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running binary: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 500 * time.Millisecond
	}
	id, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	h := &Host{
		options: o, self: self, id: id, shared: services{identity: id}, sockets: disk.SocketRoot(), processes: map[*Process]bool{},
		limits: limits{
			start: 30 * time.Second, describe: 10 * time.Second, stop: o.StopTimeout,
			healthEvery: 5 * time.Second, healthWithin: 10 * time.Second,
			backoff: support.Backoff{First: 50 * time.Millisecond, Max: 5 * time.Second}, restarts: 5,
			// If the first row of a batch of 256 ends the process, the process ends 11 times until
			// that row is alone, and four batches may do so at once: 44 ends may come from a
			// few rows. 64 ends in a row are the fault of the stage.
			ends: 64,
			deaf: 5 * time.Second,
			// Numeric libraries start a thread for each core, some of them several times.
			threads: 4096,
		},
	}
	h.memory = memory.NewWatch(func(err error) { o.Log.Warn(err.Error()) })
	h.ctx, h.end = context.WithCancel(context.Background())
	return h, nil
}

// Secrets returns the secrets that the host replaces in everything that plugins write.
func (h *Host) Secrets() *redact.Secrets { return &h.secrets }

// Close ends all processes within a second, and every call on them.
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
		_ = os.RemoveAll(h.temp)
	}
}

// temporary returns the host's own folder and creates it if necessary.
func (h *Host) temporary() (dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", ErrClosed
	}
	if h.temp == "" {
		h.temp, err = os.MkdirTemp(h.sockets, "racflow-")
	}
	return h.temp, err
}

// Scratch creates a replacement for a folder that cannot be written. It is removed when the host closes.
func (h *Host) Scratch() (string, error) {
	dir, err := h.temporary()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "state")
}

// Failed returns the reason why a stage's process is no longer restarted, so that each of its
// requests fails; nil: all processes work.
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

// identity holds the certificates that the host and plugins show to each other.
type identity struct {
	dialing   *tls.Config // for connections to plugins; go-plugin adds the certificate of a plugin that made its own
	authority string      // the authority that plugins trust, as PEM
	// Plugins show this pair when they call the engine's services; PEM. Only the engine's services
	// trust the authority that signed it, so no plugin can call another plugin or a built-in stage.
	certificate, key string
	callers          *x509.CertPool
	// A built-in stage's process shows this certificate and key to the host; PEM.
	builtin string
}

// newIdentity creates the certificates of the host and of its plugins, signed by new authorities.
// It discards the authorities' keys, so nothing else can be signed. Plugins trust an authority, not
// the host's own certificate, because some TLS libraries refuse an authority's certificate from a
// peer. Keys are P-256: go-plugin's own P-521 keys are slower, and the TLS library behind gRPC in
// other languages refuses them.
func newIdentity() (*identity, error) {
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "racflow", Organization: []string{"racflow"}},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		BasicConstraintsValid: true,
	}
	authority := template
	authority.IsCA, authority.MaxPathLenZero, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	root, rootKey, err := certificate(&authority, nil, nil)
	if err != nil {
		return nil, err
	}
	leaf := template
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	callers, callersKey, err := certificate(&authority, nil, nil)
	if err != nil {
		return nil, err
	}
	shown, shownKey, err := pemPair(leaf, callers, callersKey)
	if err != nil {
		return nil, err
	}
	leaf.Subject.CommonName, leaf.DNSNames = "localhost", []string{"localhost"}
	served := leaf
	served.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	builtin, builtinKey, err := pemPair(served, root, rootKey)
	if err != nil {
		return nil, err
	}
	leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	own, key, err := certificate(&leaf, root, rootKey)
	if err != nil {
		return nil, err
	}
	trusted, calling := x509.NewCertPool(), x509.NewCertPool()
	trusted.AddCert(root)
	calling.AddCert(callers)
	return &identity{
		dialing: &tls.Config{
			RootCAs:      trusted,
			Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}},
			MinVersion:   tls.VersionTLS12,
			ServerName:   "localhost",
		},
		authority:   pemOf("CERTIFICATE", root.Raw),
		certificate: shown, key: shownKey, callers: calling,
		builtin: builtin + builtinKey,
	}, nil
}

// serving returns the TLS configuration of the engine's services: clients have to show the
// certificate that plugins get.
func (id *identity) serving() *tls.Config {
	return &tls.Config{
		Certificates: id.dialing.Certificates, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.callers,
	}
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// pemPair creates a certificate and its key, as PEM.
func pemPair(template x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (shown, key string, err error) {
	made, private, err := certificate(&template, parent, signer)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return pemOf("CERTIFICATE", made.Raw), pemOf("PRIVATE KEY", der), err
}

// certificate creates a key and its certificate, signed by parent or, if parent is nil, by itself.
func certificate(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

// reportReadable warns once about a third-party plugin whose memory other programs of the user can
// read. It runs before the plugin gets the secrets of its config.
func (p *Process) reportReadable(c *process) {
	if p.spec.Program == nil || p.spec.Debug || os.Getenv(support.NoDumpVariable) == "1" || !isReadable(c.running.plugin(), os.Getuid()) {
		return
	}
	p.readable.Do(func() {
		p.out.log.Warn("the plugin's memory and environment are open to other programs of this user, and with them the secrets of its config; " +
			"its author can close them: prctl(PR_SET_DUMPABLE, 0), which a current SDK calls")
	})
}

// isReadable reports whether other processes of the user uid may read the memory of process pid. It
// looks at the owner of a file in /proc: Linux gives the files of a process that is not dumpable to
// root. For processes of root the owner says nothing, and root may read all memory anyway.
func isReadable(pid, uid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || uid == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
