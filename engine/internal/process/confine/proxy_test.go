package confine

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// none is an environment without a proxy.
func none(*url.URL) (*url.URL, error) { return nil, nil }

// advice stores the reports.
type advice struct {
	sync.Mutex
	all []string
}

func (a *advice) add(text string) {
	a.Lock()
	defer a.Unlock()
	a.all = append(a.all, text)
}

// proxied is a proxy with its address.
type proxied struct {
	*Proxy
	at string
}

// start serves a proxy and returns a client without any other network.
func start(t *testing.T, d dialer, allowed ...string) (*http.Client, proxied, *advice) {
	t.Helper()
	reported := &advice{}
	p, err := newProxy("mine", allowed, reported.add, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = p.accept(l, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // of the test's own server
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, proxied{p, l.Addr().String()}, reported
}

// get returns the body of a reply, after its status if that is not 200.
func get(c *http.Client, address string) string {
	reply, err := c.Get(address)
	if err != nil {
		return err.Error()
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(reply.Body)
	if reply.StatusCode != http.StatusOK {
		return fmt.Sprint(reply.StatusCode, " ", string(body), err)
	}
	return string(body)
}

// TestNoServer: if a server of this machine does not run, the log says so once.
func TestNoServer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	at := closed.Listener.Addr().String()
	c, _, reported := start(t, dialer{proxies: none}, at)
	for range 2 {
		if got := get(c, "https://"+at); !strings.Contains(got, "refused") {
			t.Error(got)
		}
	}
	reported.Lock()
	defer reported.Unlock()
	if len(reported.all) != 1 || !strings.HasPrefix(reported.all[0], "the plugin cannot reach "+at+": ") || !strings.HasSuffix(reported.all[0], "; is the server running?") {
		t.Errorf("%q", reported.all)
	}
}

func TestReach(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "reached "+r.Host+r.URL.Path) })
	plain, secure, other := httptest.NewServer(answer), httptest.NewTLSServer(answer), httptest.NewServer(answer)
	for _, s := range []*httptest.Server{plain, secure, other} {
		t.Cleanup(s.Close)
	}
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	_, port, _ := net.SplitHostPort(at(plain))
	d := dialer{proxies: none, resolver: resolving(t, [4]byte{127, 0, 0, 1})}
	c, _, reported := start(t, d, at(plain), at(secure), "api.example.com:"+port, "*.example.org:"+port)
	for address, want := range map[string]string{
		plain.URL + "/x":                        "reached " + at(plain) + "/x",
		secure.URL + "/x":                       "reached " + at(secure) + "/x",
		other.URL:                               "racflow does not allow " + at(other),
		"https://" + at(other):                  "racflow does not allow " + at(other),
		"http://localhost:" + port:              "racflow does not allow localhost:" + port,
		"https://evil.example:443":              "racflow does not allow evil.example:443",
		"http://evil.example/":                  "racflow does not allow evil.example:80",
		"http://api.example.com:" + port:        "127.0.0.1 is an address of this machine",
		"https://api.example.com:" + port:       "127.0.0.1 is an address of this machine",
		"http://API.example.com.:" + port:       "127.0.0.1 is an address of this machine",
		"https://any.example.org:" + port:       `network = ["127.0.0.1:` + port + `"]`,
		"https://any.thing.example.org:" + port: "racflow does not allow any.thing.example.org:" + port,
	} {
		if got := get(c, address); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	once := 0
	for _, text := range reported.all {
		if strings.Contains(text, "may not reach "+at(other)+";") {
			once++
			want := fmt.Sprintf(`mine = { network = [%q, %q, "api.example.com:%s", "*.example.org:%s", %q] }`, at(plain), at(secure), port, port, at(other))
			if !strings.HasSuffix(text, want) {
				t.Errorf("the advice is %s, want %s", text, want)
			}
		}
	}
	if once != 1 || len(reported.all) != 5 {
		t.Errorf("reported %d times, and in all %q", once, reported.all)
	}
}

// A name of this machine is reached if the file allows it.
func TestLocalByName(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "local") }))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c, _, _ := start(t, dialer{proxies: none}, "localhost:"+port)
	if got := get(c, "http://localhost:"+port); got != "local" {
		t.Error(got)
	}
}

// Hosts are reached through the proxy of the user's environment, with its password.
func TestChained(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "far") }))
	t.Cleanup(secure.Close)
	var asked []string
	var mu sync.Mutex
	users := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "plain from afar")
			return
		}
		if r.Host == "closed.example.com:443" {
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		near, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer near.Close() //nolint:errcheck // it may be closed
		far, err := net.Dial("tcp", secure.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close() //nolint:errcheck // the same
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(far, rest) }()
		_, _ = io.Copy(near, far)
	}))
	t.Cleanup(users.Close)
	t.Setenv("HTTPS_PROXY", "http://me:word@"+users.Listener.Addr().String())
	t.Setenv("HTTP_PROXY", users.URL)
	t.Setenv("NO_PROXY", "direct.example.com")
	c, _, _ := start(t, dialer{proxies: userProxies(), resolver: resolving(t, [4]byte{127, 0, 0, 1})}, "*.example.com:443", "*.example.com:80")
	for address, want := range map[string]string{
		"https://far.example.com":    "far",
		"http://far.example.com":     "plain from afar",
		"https://closed.example.com": "the proxy of the environment answered 402",
		"https://direct.example.com": "an address of this machine",
		"https://far.example.org":    "does not allow",
	} {
		if got := get(c, address); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(asked, ", "); len(asked) != 3 || !strings.Contains(all, "CONNECT far.example.com:443 Basic bWU6d29yZA==") || !strings.Contains(all, "GET far.example.com") {
		t.Errorf("the user's proxy was asked for %s", all)
	}
}

// If a plugin closes its direction, it still gets an answer. Close ends everything.
func TestHalves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(c) // until the plugin has closed its direction
			_, _ = fmt.Fprintf(c, "%d bytes", len(all))
			_ = c.Close()
		}
	}()
	_, p, _ := start(t, dialer{proxies: none}, l.Addr().String())
	open := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", p.at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\nearly", l.Addr())
		r := bufio.NewReader(c)
		//nolint:bodyclose // what follows is the connection
		if reply, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || reply.StatusCode != http.StatusOK {
			t.Fatal(reply, err)
		}
		return c, r
	}
	c, r := open()
	_, _ = io.WriteString(c, " and late")
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "14 bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, r = open()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := io.ReadAll(r); len(got) > 0 {
		t.Errorf("after Close: %q", got)
	}
	if _, err := net.Dial("tcp", p.at); err == nil {
		t.Error("a closed proxy accepts connections")
	}
}

// resolving resolves every name to one address.
func resolving(t *testing.T, address [4]byte) *net.Resolver {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		question := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(question[:n]) != nil {
				continue
			}
			m.Response = true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, Body: &dnsmessage.AResource{A: address}}}
			}
			reply, _ := m.Pack()
			_, _ = server.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
