package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/netutil"
)

// This file lets a confined plugin reach only the hosts that its file allows. It is an HTTP proxy
// that accepts connections in the plugin's network: CONNECT for TLS and other protocols, and plain
// HTTP. There it also takes the connections to a host on this machine's loopback, for which clients
// use no proxy.
//
// The proxy resolves names, so that a plugin needs no other network. It refuses names that resolve
// to this machine (loopback, link-local, addresses of its interfaces) unless the file names these.
// It connects through the proxies of the user's own environment. It reports each host that is not
// allowed once, with the line that would allow it.
//
// The proxy does not inspect the traffic: a plugin can send everything that it knows to an allowed
// host, and a large service behind one name may also serve others.

const (
	connections = 256         // maximum connections to one listener at a time; others wait
	hosts       = 100         // maximum number of reported hosts
	header      = 64 << 10    // maximum bytes of a request's header
	patience    = time.Minute // for a request's header, and for connecting
)

// Proxy forwards connections until it is closed.
type Proxy struct {
	plugin  string
	allowed []Host
	refused func(advice string)
	dialer  dialer
	server  *http.Server
	onward  *http.Transport // for plain HTTP
	ctx     context.Context // ends with Close
	end     context.CancelFunc

	mu       sync.Mutex
	reported map[string]bool
}

// NewProxy returns a proxy to the allowed hosts, in the form of ParseHost. It calls refused once for
// each other host that the plugin asks for, with the line that would allow it; the plugin chooses
// the host's name. It also calls refused once for each allowed host on the loopback that does not
// answer, because the plugin itself does not learn the reason.
func NewProxy(plugin string, allowed []string, refused func(advice string)) (*Proxy, error) {
	return newProxy(plugin, allowed, refused, dialer{proxies: userProxies()})
}

// userProxies returns a function that finds an address's proxy in the environment.
func userProxies() func(*url.URL) (*url.URL, error) {
	c := httpproxy.FromEnvironment()
	all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy"))
	c.HTTPProxy, c.HTTPSProxy = cmp.Or(c.HTTPProxy, all), cmp.Or(c.HTTPSProxy, all)
	return c.ProxyFunc()
}

func newProxy(plugin string, allowed []string, refused func(advice string), d dialer) (*Proxy, error) {
	p := &Proxy{plugin: plugin, refused: refused, dialer: d, reported: map[string]bool{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	for _, text := range allowed {
		host, err := ParseHost(text)
		if err != nil {
			return nil, err
		}
		p.allowed = append(p.allowed, host)
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
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, plain) }),
		ReadHeaderTimeout: patience, IdleTimeout: patience, MaxHeaderBytes: header, ErrorLog: quiet,
	}
	return p, nil
}

// accept serves the connections to a listener until Close. They are requests to the proxy or, if host
// is not empty, connections to that host only.
func (p *Proxy) accept(l net.Listener, host string) error {
	bounded := netutil.LimitListener(l, connections)
	if host == "" {
		go func() { _ = p.server.Serve(bounded) }() // until Close
		return nil
	}
	h, err := ParseHost(host)
	if err != nil {
		return err
	}
	context.AfterFunc(p.ctx, func() { _ = bounded.Close() })
	go func() {
		for {
			near, err := bounded.Accept()
			if err != nil {
				return
			}
			go p.pass(near, h)
		}
	}()
	return nil
}

// pass connects a plugin with a host, if the plugin may reach it.
func (p *Proxy) pass(near net.Conn, host Host) {
	defer near.Close() //nolint:errcheck // it may be closed already
	if !p.allows(host) {
		p.advise(host)
		return
	}
	if far, err := p.connect(withHost(p.ctx, host)); err == nil {
		p.join(near, near, far)
	}
}

// Close ends all connections.
func (p *Proxy) Close() error {
	p.end()
	err := p.server.Close()
	p.onward.CloseIdleConnections()
	return err
}

func (p *Proxy) allows(host Host) bool {
	return slices.ContainsFunc(p.allowed, func(h Host) bool { return h.allows(host) })
}

// connect connects to the host of a context. If a local host does not answer, it tells the user.
func (p *Proxy) connect(ctx context.Context) (net.Conn, error) {
	far, err := p.dialer.connect(ctx)
	if host := hostOf(ctx); err != nil && host.loopback() && ctx.Err() == nil && p.first(host) {
		p.refused(fmt.Sprintf("the plugin cannot reach %s: %v; is the server running?", host, err))
	}
	return far, err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, plain http.Handler) {
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
	case !p.allows(host):
		p.refuse(w, r, host)
		return
	}
	r = r.WithContext(withHost(r.Context(), host))
	if r.Method == http.MethodConnect {
		far, err := p.connect(r.Context())
		if err == nil {
			p.tunnel(w, far)
			return
		}
		deny(w, http.StatusBadGateway, "racflow: "+err.Error())
		return
	}
	plain.ServeHTTP(w, r)
}

// advise tells the user, the first time, how to allow a host.
func (p *Proxy) advise(host Host) {
	if !p.first(host) {
		return
	}
	var all []string
	for _, h := range append(slices.Clone(p.allowed), host) {
		all = append(all, fmt.Sprintf("%q", h))
	}
	p.refused(fmt.Sprintf("the plugin may not reach %s; if it should, write in required_plugins: %s = { network = [%s] }", host, p.plugin, strings.Join(all, ", ")))
}

// refuse tells the plugin that it may not reach a host.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, host Host) {
	p.advise(host)
	why := "racflow does not allow " + host.String()
	if r.Method == http.MethodConnect {
		deny(w, http.StatusForbidden, why) // clients show only this line of the reply
		return
	}
	http.Error(w, why, http.StatusForbidden)
}

// first reports whether to report a host, and marks the host: each is reported once, and at most 100
// are.
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

// tunnel connects the plugin behind a request with a host.
func (p *Proxy) tunnel(w http.ResponseWriter, far net.Conn) {
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = errors.Join(near.Close(), far.Close())
		return
	}
	p.join(near, buffered.Reader, far) // the buffer may hold data that followed the request
}

// join connects a plugin, whose data come from said, with a host. It lasts until the host ends the
// connection, or until Close. The plugin may end its own direction earlier.
func (p *Proxy) join(near net.Conn, said io.Reader, far net.Conn) {
	both := func() { _ = errors.Join(near.Close(), far.Close()) }
	defer both()
	defer context.AfterFunc(p.ctx, both)()
	go func() {
		_, err := io.Copy(far, said)
		if half, ok := far.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}
