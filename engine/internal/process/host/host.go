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
	"github.com/racflow/racflow/sdk/support"
)

// BoundMemory bounds what racflow and all processes that it starts hold together. of says for
// people whose bound that is.
func (h *Host) BoundMemory(bytes int64, of string) {
	h.mu.Lock()
	h.total = memory.Bound{Bytes: bytes, Of: "memory of " + of}
	h.mu.Unlock()
	h.memory.Total(h.total)
}

// bounded watches the memory of a process from its start to its end.
func (h *Host) bounded(running *runningProcess, bytes int64, of string) {
	running.begun = func(c *confine.Control) (ended func()) {
		return h.memory.Add(c.PID(), c.Keeper(), memory.Bound{Bytes: bytes, Of: "memory of " + of}, func(reason error) {
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
		// The runtime works harder before the bound is reached; the rest is for what it does not count.
		running.cmd.Env = append(running.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", bytes/10*9))
	}
}

// explainKill says whether the kernel has ended processes for lack of memory since there were so many.
func explainKill(before int64) string {
	switch now, known := memory.Kills(); {
	case !known:
		return ", which is also what the system does when memory ends"
	case now > before:
		return fmt.Sprintf(", most likely by the kernel for lack of memory (its count of such ends rose by %d while this process ran); "+
			"give the machine or the container more, or bound what stages hold: memory = \"2GiB\"", now-before)
	}
	return ", and not by the kernel for lack of memory"
}

// noBytecode keeps Python from writing beside the modules that it loads: what an installed plugin
// has more than when it was locked is refused, and root may write there whatever the rights are.
const noBytecode = "PYTHONDONTWRITEBYTECODE=1"

// What a plugin may see of racflow's environment. All else stays here, since
// it may hold secrets that belong to other stages.
var (
	passed = []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOGC", "GOMAXPROCS", "GODEBUG", "GORACE", "GOCOVERDIR", models, support.NoDumpVariable,
	}
	passedPrefixes = []string{"XDG_", "LC_", "SSL_CERT_"}
	proxies        = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"} // and in lower case
)

// models is the folder that models are loaded to, and from.
const models = "RACFLOW_MODELS"

// environment filters the host's for a plugin; network adds the proxies.
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

// confinedEnvironment is environment for a plugin that is confined by a policy: nothing in it names
// a folder that the plugin cannot read. Certificates that it names become readable.
func confinedEnvironment(all []string, policy *confine.Policy) []string {
	var kept []string
	for _, variable := range environment(all, false) {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_"):
			continue // it gets folders of its own
		case name == models && !slices.ContainsFunc(slices.Concat(policy.Read, policy.Write), func(dir string) bool { return isBelow(value, dir) }):
			continue
		case strings.HasPrefix(name, "SSL_CERT_"):
			policy.Read = append(policy.Read, filepath.SplitList(value)...)
		}
		kept = append(kept, variable)
	}
	return kept
}

// isBelow reports whether a path is a folder or lies in it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

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
	said    warnings
	replays Replays
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
		options: o, id: id, shared: services{identity: id}, sockets: socketFolder(), processes: map[*Process]bool{}, said: warnings{first: map[string]*warning{}},
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
	h.said.close(h.options.Log)
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
		h.temp, h.forget, err = disk.TempFolder(h.sockets)
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

// identity is what host and plugins show each other.
type identity struct {
	dialing   *tls.Config // to plugins; go-plugin adds the certificate of a plugin that made its own
	authority string      // what plugins trust, as PEM
	// What a plugin shows where it asks for the engine's services, as PEM.
	certificate, key string
	// What the process of a built-in stage shows to the host, certificate and key, as PEM.
	builtin string
}

// newIdentity makes the certificates of the host and of its plugins, under an authority of
// its own that signs nothing else and whose key is gone when it returns. Plugins trust that
// authority: some TLS libraries refuse to take an authority's certificate for that of a peer.
// Keys are P-256, since the P-521 keys of go-plugin's own are refused by the TLS library of
// other languages' gRPC, and slower.
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
	shown, shownKey, err := pemPair(leaf, root, rootKey)
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
	trusted := x509.NewCertPool()
	trusted.AddCert(root)
	return &identity{
		dialing: &tls.Config{
			RootCAs:      trusted,
			Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}},
			MinVersion:   tls.VersionTLS12,
			ServerName:   "localhost",
		},
		authority:   pemOf("CERTIFICATE", root.Raw),
		certificate: shown, key: shownKey,
		builtin: builtin + builtinKey,
	}, nil
}

// serving is the configuration of the engine's services: who asks shows the certificate that
// plugins were given.
func (id *identity) serving() *tls.Config {
	return &tls.Config{
		Certificates: id.dialing.Certificates, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.dialing.RootCAs,
	}
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// pemPair makes a certificate and its key, as PEM.
func pemPair(template x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (shown, key string, err error) {
	made, private, err := certificate(&template, parent, signer)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return pemOf("CERTIFICATE", made.Raw), pemOf("PRIVATE KEY", der), err
}

// certificate makes a key and its certificate, signed by a parent or, without one, by
// itself.
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

// reportReadable warns, once, of a third party's plugin that leaves its memory open to other programs
// of the user: the secrets of its config come next.
func (p *Process) reportReadable(c *process) {
	if p.spec.Program == nil || p.spec.Debug || os.Getenv(support.NoDumpVariable) == "1" || !isReadable(c.running.plugin(), os.Getuid()) {
		return
	}
	p.readable.Do(func() {
		p.out.log.Warn("the plugin's memory and environment are open to other programs of this user, and with them the secrets of its config; " +
			"its author can close them: prctl(PR_SET_DUMPABLE, 0), which a current SDK calls")
	})
}

// isReadable reports whether other processes of a user may read the memory of one of the user's. As far as
// the system shows: Linux gives the files of a process that is not dumpable to root. So of
// root's own processes nothing is known, and root may read all of them anyway.
func isReadable(pid, uid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || uid == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
