package confine

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// This file lets a confined plugin reach only the hosts that its file allows. It is an HTTP proxy
// on a unix socket: CONNECT for TLS and other protocols, and plain HTTP. The keeper forwards the
// plugin's connections to it, also those to a host on this machine's loopback, for which clients
// use no proxy.
//
// The proxy resolves names, so that a plugin needs no other network. It refuses names that resolve
// to this machine (loopback, link-local, addresses of its interfaces) unless the file names these.
// It connects through the proxies of the user's own environment. It reports each host that is not
// allowed once, with the line that would allow it.
//
// The proxy does not inspect the traffic: a plugin can send everything that it knows to an allowed
// host, and a large service behind one name may also serve others.

// limited is a listener that accepts a bounded number of connections at a time. (Package netutil's
// hides that one direction of a connection can be closed.)
type limited struct {
	*net.UnixListener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func proxyLimit(l *net.UnixListener, n int) *limited {
	return &limited{UnixListener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptUnix()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &accepted{UnixConn: c, release: sync.OnceFunc(func() { <-l.free })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.UnixListener.Close()
}

type accepted struct {
	*net.UnixConn
	release func()
}

// Close implements net.Conn.
func (c *accepted) Close() error {
	err := c.UnixConn.Close()
	c.release()
	return err
}

const (
	connections = 256         // maximum connections of a plugin at a time; others wait
	hosts       = 100         // maximum number of reported hosts
	header      = 64 << 10    // maximum bytes of a request's header
	patience    = time.Minute // for a request's header, and for connecting
)

// Proxy forwards connections until it is closed.
type Proxy struct {
	plugin  string
	allowed []Host
	refused func(advice string)
	path    string
	server  *http.Server
	onward  *http.Transport // for plain HTTP
	tunnels tunnels

	mu       sync.Mutex
	reported map[string]bool
}

// ListenProxy creates a socket with an unguessable name in dir, which only its owner may access,
// and serves the clients that connect. allowed lists hosts in the form of ParseHost. ListenProxy
// calls refused once for each other host that the plugin asks for, with the line that would allow
// it; the plugin chooses the host's name. It also calls refused once for each allowed host on the
// loopback that does not answer, because the plugin itself does not learn the reason.
func ListenProxy(dir, plugin string, allowed []string, refused func(advice string)) (*Proxy, error) {
	return listenSocket(dir, plugin, allowed, refused, dialer{proxies: userProxies()})
}

// userProxies returns a function that finds an address's proxy in the environment.
func userProxies() func(*url.URL) (*url.URL, error) {
	c := httpproxy.FromEnvironment()
	all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy"))
	c.HTTPProxy, c.HTTPSProxy = cmp.Or(c.HTTPProxy, all), cmp.Or(c.HTTPSProxy, all)
	return c.ProxyFunc()
}

func listenSocket(dir, plugin string, allowed []string, refused func(advice string), d dialer) (*Proxy, error) {
	p := &Proxy{
		tunnels: tunnels{open: map[io.Closer]bool{}},
		plugin:  plugin, refused: refused, path: filepath.Join(dir, strings.ToLower(rand.Text()[:16])), reported: map[string]bool{},
	}
	for _, text := range allowed {
		host, err := ParseHost(text)
		if err != nil {
			return nil, err
		}
		p.allowed = append(p.allowed, host)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the socket of the plugin's network: %w", err)
	}
	p.onward = &http.Transport{
		Proxy:       func(r *http.Request) (*url.URL, error) { return d.proxies(r.URL) },
		DialContext: d.direct, DisableCompression: true, MaxIdleConns: connections, IdleConnTimeout: patience,
	}
	quiet := log.New(io.Discard, "", 0)
	plain := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host, r.Out.URL.Host = r.In.URL.Host, hostOf(r.In.Context()).String()
		},
		Transport:     p.onward,
		FlushInterval: -1, // streams are not buffered
		ErrorLog:      quiet,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "racflow: "+err.Error(), http.StatusBadGateway)
		},
	}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, d, plain) }),
		ReadHeaderTimeout: patience, IdleTimeout: patience, MaxHeaderBytes: header, ErrorLog: quiet,
	}
	go func() { _ = p.server.Serve(proxyLimit(listener, connections)) }() // until Close
	return p, nil
}

// Path returns the path of the socket.
func (p *Proxy) Path() string { return p.path }

// Close ends all connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.tunnels.close()
	p.onward.CloseIdleConnections()
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, d dialer, plain http.Handler) {
	asked := r.Host
	if r.Method != http.MethodConnect {
		asked = r.URL.Host
		if r.URL.Scheme != "http" || asked == "" {
			http.Error(w, "racflow: this is a proxy; it takes CONNECT and addresses that begin with http://", http.StatusBadRequest)
			return
		}
		if r.URL.Port() == "" {
			asked += ":80"
		}
	}
	host, err := ParseHost(asked)
	switch {
	case err != nil || host.wildcard:
		http.Error(w, "racflow: that is no host with a port", http.StatusBadRequest)
		return
	case !slices.ContainsFunc(p.allowed, func(h Host) bool { return h.allows(host) }):
		p.refuse(w, r, host)
		return
	}
	r = r.WithContext(withHost(r.Context(), host))
	if r.Method == http.MethodConnect {
		far, err := d.connect(r.Context())
		if err == nil {
			p.tunnels.serve(w, far)
			return
		}
		if host.loopback() && r.Context().Err() == nil && p.first(host) {
			p.refused(fmt.Sprintf("the plugin cannot reach %s: %v; is the server running?", host, err))
		}
		deny(w, http.StatusBadGateway, "racflow: "+err.Error())
		return
	}
	plain.ServeHTTP(w, r)
}

// refuse tells the plugin that it may not reach a host, and tells the user the first time.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, host Host) {
	if p.first(host) {
		var all []string
		for _, h := range append(slices.Clone(p.allowed), host) {
			all = append(all, fmt.Sprintf("%q", h))
		}
		p.refused(fmt.Sprintf("the plugin may not reach %s; if it should, write in required_plugins: %s = { network = [%s] }", host, p.plugin, strings.Join(all, ", ")))
	}
	why := "racflow does not allow " + host.String()
	if r.Method == http.MethodConnect {
		deny(w, http.StatusForbidden, why) // clients show only this line of the reply
		return
	}
	http.Error(w, why, http.StatusForbidden)
}

// first reports whether to report a host, and marks it: each is reported once, and at most 100 are.
func (p *Proxy) first(host Host) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.reported[host.String()] && len(p.reported) < hosts
	if first {
		p.reported[host.String()] = true
	}
	return first
}

// deny answers CONNECT with a status line that gives the reason.
func deny(w http.ResponseWriter, code int, why string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	why = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, why)
	_, _ = fmt.Fprintf(connection, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", code, why)
	_ = connection.Close()
}

// tunnels holds the open connections of CONNECT.
type tunnels struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]bool
}

// add registers a connection that close will end.
func (t *tunnels) add(c io.Closer) (remove func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false
	}
	t.open[c] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, c)
	}, true
}

func (t *tunnels) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.open {
		_ = c.Close()
	}
}

// serve connects a plugin with a host until both directions have ended.
func (t *tunnels) serve(w http.ResponseWriter, far net.Conn) {
	defer far.Close() //nolint:errcheck // it may be closed already
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close() //nolint:errcheck // it may be closed already
	for _, c := range []io.Closer{near, far} {
		remove, ok := t.add(c)
		if !ok {
			return
		}
		defer remove()
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { passOn(far, buffered.Reader) }) // the buffer may hold data that followed the request
	both.Go(func() { passOn(near, far) })
	both.Wait()
}

// passOn copies until the end of from and then closes only that direction, since the other may continue.
func passOn(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}
