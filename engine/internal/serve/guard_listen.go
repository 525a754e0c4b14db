package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/source/rows"
)

// Loopback reports whether only this machine can reach an address such as 127.0.0.1:8080.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && confine.ThisMachine(host)
}

// known reports whether a request's Host is a name of this server. Without this check, an attacker
// whose domain resolves to a loopback address could let web pages call this server under that
// domain (DNS rebinding).
func (o *GuardOptions) known(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if slices.ContainsFunc(o.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if o.Local {
		return confine.ThisMachine(host)
	}
	return len(o.Hosts) == 0 || confine.ThisMachine(host) && fromHere(r)
}

// fromHere reports whether a request comes from this machine.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && confine.ThisMachine(host)
}

// Network configures how a server is reached.
type Network struct {
	Address   string // such as 127.0.0.1:8080
	Cert, Key string // PEM files, read again after a change; empty: no TLS
	// Insecure allows an address that other machines reach without TLS or without tokens: a proxy
	// in front of it, or the network, has to provide the protection.
	Insecure    bool
	Connections int // maximum open connections; further ones wait until others close; 0: no limit
	Log         *slog.Logger
}

// Listen starts to listen. It refuses a configuration that lets others eavesdrop or lets everybody
// call.
func Listen(n Network, tokens *Tokens) (net.Listener, error) {
	if (n.Cert == "") != (n.Key == "") {
		return nil, fmt.Errorf("TLS takes a certificate and a key: give both files")
	}
	if !Loopback(n.Address) && !n.Insecure {
		switch {
		case n.Cert == "":
			return nil, fmt.Errorf("%s can be reached from other machines: give a certificate and a key for TLS, or allow what is insecure where something in front of racflow sees to that", n.Address)
		case tokens == nil:
			return nil, fmt.Errorf("%s can be reached from other machines: give tokens, or allow what is insecure where everybody may call", n.Address)
		}
	}
	var config *tls.Config
	if n.Cert != "" {
		pair, err := watch(n.Log, func() (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(n.Cert, n.Key)
			return &c, err
		}, n.Cert, n.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		config = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.get(), nil },
		}
	}
	var listening net.ListenConfig
	l, err := listening.Listen(context.Background(), "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	if n.Connections > 0 {
		l = netutil.LimitListener(l, n.Connections)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// newServer returns a server that closes connections without timely traffic. Bodies and answers
// have their own deadlines (GuardOptions).
func newServer(h http.Handler, o GuardOptions) *http.Server {
	o = o.defaults()
	return &http.Server{
		Handler: h, ReadHeaderTimeout: o.Header, IdleTimeout: o.Idle, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // invalid traffic from strangers is only a debug message
	}
}

// headerBytes is the maximum size of a request's headers; the server answers larger ones with 431.
const headerBytes = 32 << 10

// problemContentType is the content type of a Problem.
const problemContentType = "application/problem+json"

// Problem is the answer to a request that cannot be served (RFC 9457). Its type is "about:blank",
// so the status alone classifies it.
type Problem struct {
	Title  string `json:"title" doc:"What the status means"`
	Status int    `json:"status" doc:"The HTTP status"`
	Detail string `json:"detail,omitempty" doc:"What is wrong with this request, and what to do about it"`
	Stage  string `json:"stage,omitempty" doc:"The stage that failed, such as sample.linear"`
	// Errors lists the mistakes in a body of the wrong form.
	Errors []problemDetail `json:"errors,omitempty" doc:"What of the body or the parameters does not have the right form"`

	// RetryAfter is when another attempt makes sense; 0: unknown.
	RetryAfter time.Duration `json:"-"`
}

// problemDetail is one mistake in a request.
type problemDetail struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty" doc:"Such as body.text"`
}

// newProblem returns a Problem with the usual title of its status.
func newProblem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns additional response headers.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
	return h
}

// ContentType returns the content type of a problem, whatever content type the response would have.
func (p *Problem) ContentType(string) string { return problemContentType }

// ServeHTTP answers any request with the problem.
func (p *Problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for name, values := range p.GetHeaders() {
		h[name] = values
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	writeJSON(w, problemContentType, p.Status, p)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, contentType string, status int, value any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // the client may have disconnected
}

// watched is a value that is read from files, and read again when one of them has changed. If that
// fails, the previous value stays in use.
type watched[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu       sync.Mutex
	seen     []fs.FileInfo
	reported bool // the failure to read the files was logged
	value    T
}

// watch reads the files for the first time.
func watch[T any](log *slog.Logger, read func() (T, error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: paths, read: read, log: log}
	var err error
	if w.seen, err = w.stat(); err == nil {
		w.value, err = read()
	}
	return w, err
}

// stat follows links, because mounted secrets are replaced by changing a link.
func (w *watched[T]) stat() ([]fs.FileInfo, error) {
	var all []fs.FileInfo
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// get returns the current value. It costs one stat per file.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, err := w.stat()
	if err == nil && slices.EqualFunc(w.seen, now, unchanged) {
		return w.value
	}
	var value T
	if err == nil {
		value, err = w.read()
	}
	if err != nil {
		if !w.reported {
			w.log.Error("a file that changed cannot be used, and what it held before stays in use", "error", err)
		}
		w.seen, w.reported = nil, true
		return w.value
	}
	w.seen, w.value, w.reported = now, value, false
	w.log.Info("a file that changed was read again", "file", w.paths[0])
	return value
}

func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// minToken is the minimum length of a token in bytes. Shorter ones can be guessed.
const minToken = 16

// digest is the stored form of a token.
type digest [sha256.Size]byte

// Tokens are the valid tokens of callers ("Authorization: Bearer TOKEN"). Only their digests are in
// memory.
type Tokens struct {
	fixed []digest
	file  *watched[[]digest] // nil: there is none
}

// NewTokens reads tokens from a text and from a file, either of which may be empty; it returns nil
// if both are empty. Both have one token per line; empty lines and lines that start with # are
// skipped. The file is read again after a change.
func NewTokens(text, path string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{}
	if text != "" {
		var err error
		if t.fixed, err = parseTokens([]byte(text)); err != nil {
			return nil, err
		}
	}
	if path != "" {
		var err error
		t.file, err = watch(log, func() ([]digest, error) { return readTokens(path) }, path)
		if err != nil {
			return nil, err
		}
	}
	if t.fixed == nil && t.file == nil {
		return nil, nil
	}
	return t, nil
}

func readTokens(path string) ([]digest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := parseTokens(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// parseTokens never puts a token into an error.
func parseTokens(content []byte) (all []digest, err error) {
	in := bufio.NewScanner(bytes.NewReader(rows.TrimMark(content)))
	for n := 1; in.Scan(); n++ {
		token := strings.TrimSpace(in.Text())
		switch {
		case token == "" || token[0] == '#':
			continue
		case len(token) < minToken:
			return nil, fmt.Errorf("line %d: a token of %d characters can be guessed: take at least %d, such as those of openssl rand -hex 32", n, len(token), minToken)
		case strings.ContainsAny(token, " \t"):
			return nil, fmt.Errorf("line %d: a token holds no space; write one token a line", n)
		}
		all = append(all, sha256.Sum256([]byte(token)))
	}
	if err := in.Err(); err != nil {
		return nil, errors.New("a line is too long for a token")
	}
	if len(all) == 0 {
		return nil, errors.New("there is no token: write one a line")
	}
	return all, nil
}

// admit reports whether the value of an Authorization header has a valid token. Its timing reveals
// nothing about the tokens.
func (t *Tokens) admit(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for _, all := range [][]digest{t.fixed, t.fromFile()} {
		for i := range all {
			found |= subtle.ConstantTimeCompare(all[i][:], given[:])
		}
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

func (t *Tokens) fromFile() []digest {
	if t.file == nil {
		return nil
	}
	return t.file.get()
}
