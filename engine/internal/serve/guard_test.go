package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

const token = "0123456789abcdef"

// echo answers with the body, or with the reason why the body cannot be read.
func echo(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		unreadableBody(err).ServeHTTP(w, r)
		return
	}
	_, _ = w.Write(content)
}

func guarded(t *testing.T, h http.HandlerFunc, o GuardOptions) *guard {
	t.Helper()
	return must.Get(newGuard(h, o))(t)
}

// replace replaces a file atomically.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path+".new", content, 0o600))
	must.Do(t, os.Rename(path+".new", path))
}

func tokens(t *testing.T) *Tokens {
	t.Helper()
	return must.Get(NewTokens("# of the first program\n"+token+"\n\nfedcba9876543210\r\n", "", slog.New(slog.DiscardHandler)))(t)
}

func TestGuard(t *testing.T) {
	local := GuardOptions{Local: true, Hosts: []string{"racflow.test"}}
	page := map[string]string{"Origin": "https://page.test"}
	for name, test := range map[string]struct {
		options           GuardOptions
		method, host      string
		remote            string
		header            map[string]string
		path, body        string
		status            int
		wantHeader, wants string // a header, and its value
	}{
		"loopback":             {options: local, host: "127.0.0.1:8080", status: 200},
		"localhost":            {options: local, host: "LocalHost:8080", status: 200},
		"loopback of IPv6":     {options: local, host: "[::1]:8080", status: 200},
		"without a port":       {options: local, host: "[::1]", status: 200},
		"a name that is given": {options: local, host: "racflow.test.:8080", status: 200},
		"rebinding":            {options: local, host: "evil.test:8080", status: 421},
		"rebinding by number":  {options: local, host: "10.0.0.1:8080", status: 421},
		"no host":              {options: local, host: " ", status: 421},
		"any host elsewhere":   {host: "racflow.test", status: 200},
		"another name":         {options: GuardOptions{Hosts: []string{"racflow.test"}}, host: "evil.test", status: 421},
		"from here":            {options: GuardOptions{Hosts: []string{"racflow.test"}}, host: "127.0.0.1", remote: "127.0.0.1:99", status: 200},
		"from elsewhere":       {options: GuardOptions{Hosts: []string{"racflow.test"}}, host: "127.0.0.1", remote: "192.0.2.1:99", status: 421},

		"another page":          {header: page, status: 403},
		"a page says so itself": {header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		"no page's":             {header: map[string]string{"Origin": "null"}, status: 403},
		"its own page":          {header: map[string]string{"Origin": "http://127.0.0.1:8080"}, status: 200},
		"a page reads":          {method: http.MethodGet, header: page, status: 200, wantHeader: "Access-Control-Allow-Origin"},
		"a page that may": {options: GuardOptions{Origins: []string{"https://page.test"}}, header: page, status: 200,
			wantHeader: "Access-Control-Allow-Origin", wants: "https://page.test"},
		"a page asks first": {
			options: GuardOptions{Origins: []string{"https://page.test"}, Tokens: tokens(t)}, method: http.MethodOptions,
			header: map[string]string{"Origin": "https://page.test", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"},
			status: 204, wantHeader: "Access-Control-Allow-Headers", wants: "authorization,content-type",
		},
		"another page asks first": {
			options: GuardOptions{Origins: []string{"https://page.test"}}, method: http.MethodOptions,
			header: map[string]string{"Origin": "https://evil.test", "Access-Control-Request-Method": "POST"},
			status: 204, wantHeader: "Access-Control-Allow-Origin",
		},

		"a token":          {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Bearer " + token}, status: 200},
		"another token":    {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "bearer  fedcba9876543210"}, status: 200},
		"a wrong token":    {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Bearer " + token + "0"}, status: 401, wantHeader: "WWW-Authenticate", wants: `Bearer realm="racflow"`},
		"a part of one":    {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Bearer " + token[:15]}, status: 401},
		"no token":         {options: GuardOptions{Tokens: tokens(t)}, status: 401},
		"an empty token":   {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Bearer "}, status: 401},
		"a comment":        {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Bearer # of the first program"}, status: 401},
		"another scheme":   {options: GuardOptions{Tokens: tokens(t)}, header: map[string]string{"Authorization": "Basic " + token}, status: 401},
		"public":           {options: GuardOptions{Tokens: tokens(t), Public: []string{"/healthz"}}, path: "/healthz", status: 200},
		"public by detour": {options: GuardOptions{Tokens: tokens(t), Public: []string{"/healthz"}}, path: "/healthz/", status: 401},

		"a body":          {body: strings.Repeat("x", 100), options: GuardOptions{Body: 100}, status: 200},
		"too long":        {body: strings.Repeat("x", 101), options: GuardOptions{Body: 100}, status: 413},
		"a packed body":   {body: "x", header: map[string]string{"Content-Encoding": "gzip"}, status: 415},
		"too long stream": {body: strings.Repeat("x", 101), options: GuardOptions{Body: 100, Streams: func(*http.Request) bool { return true }}, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []RequestSeen
			test.options.Watch = func(r *http.Request) (*http.Request, func(RequestSeen)) {
				return r, func(s RequestSeen) { seen = append(seen, s) }
			}
			r := httptest.NewRequest(cmp.Or(test.method, http.MethodPost), cmp.Or(test.path, "/"), strings.NewReader(test.body))
			r.Host = strings.TrimSpace(cmp.Or(test.host, "127.0.0.1:8080"))
			r.RemoteAddr = cmp.Or(test.remote, r.RemoteAddr)
			for name, value := range test.header {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			guarded(t, echo, test.options).ServeHTTP(w, r)
			if w.Code != test.status || test.wantHeader != "" && w.Header().Get(test.wantHeader) != test.wants {
				t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
			if len(seen) != 1 || seen[0].Status != w.Code || seen[0].Bytes != int64(w.Body.Len()) {
				t.Errorf("seen as %+v", seen)
			}
			var p Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); w.Code >= 400 && (err != nil || p.Status != w.Code || p.Detail == "") {
				t.Errorf("%v: %s", err, w.Body)
			}
		})
	}
	if _, err := newGuard(http.NotFoundHandler(), GuardOptions{Origins: []string{"page.test"}}); err == nil {
		t.Error("an origin without a scheme is taken")
	}
}

// TestConcurrency: requests above the limit are refused immediately; public paths are not.
func TestConcurrency(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	g := guarded(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/work" {
			inside <- struct{}{}
			<-release
		}
	}, GuardOptions{Concurrency: 2, Public: []string{"/healthz"}})
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	done := make(chan int)
	for range 2 {
		go func() { done <- ask("/work").Code }()
		<-inside
	}
	if w := ask("/work"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask("/healthz"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	close(release)
	for range 2 {
		if code := <-done; code != 200 {
			t.Errorf("%d", code)
		}
	}
	if w := ask("/"); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// piped is a response whose read deadline applies to a pipe.
type piped struct {
	http.ResponseWriter
	conn net.Conn
}

// SetReadDeadline is the method that http.ResponseController looks for.
func (p piped) SetReadDeadline(t time.Time) error { return p.conn.SetReadDeadline(t) }

// TestStalledBodies: if all places are taken, the slowest body makes room for another request. Fast
// senders and requests in work stay.
func TestStalledBodies(t *testing.T) {
	for name, test := range map[string]struct {
		streams, busy bool
		age           time.Duration // of the slow bodies
		each          int           // bytes sent every 10 ms
		status        int           // of one more request
	}{
		"nothing comes":        {age: time.Second, status: 200},
		"a byte now and then":  {age: 10 * time.Second, each: 1, status: 200},
		"streams":              {streams: true, age: time.Second, status: 200},
		"streams of bytes":     {streams: true, age: time.Minute, each: 1, status: 200},
		"they have just begun": {age: patience / 2, status: 429},
		"the server works":     {busy: true, age: time.Second, status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const places = 5
				end := make(chan struct{})
				g := guarded(t, func(w http.ResponseWriter, r *http.Request) {
					if test.busy {
						<-end
					}
					echo(w, r)
				}, GuardOptions{Concurrency: places, Streams: func(*http.Request) bool { return test.streams }})
				ask := func(body io.Reader, conn net.Conn) int {
					w := httptest.NewRecorder()
					g.ServeHTTP(piped{w, conn}, httptest.NewRequest(http.MethodPost, "/", body))
					return w.Code
				}
				type ended struct{ body, code int }
				all := make(chan ended, places)
				for i := range places {
					client, server := net.Pipe()
					go func() {
						defer server.Close()
						all <- ended{i, ask(server, server)}
					}()
					go func() {
						defer client.Close()
						for {
							n := test.each
							if i == 0 { // a fast sender
								n = 100
							}
							select {
							case <-end:
								return
							case <-time.After(10 * time.Millisecond):
							}
							if _, err := client.Write(bytes.Repeat([]byte("x"), n)); err != nil {
								return
							}
						}
					}()
				}
				time.Sleep(test.age)
				free, _ := net.Pipe()
				begun := time.Now()
				if code := ask(strings.NewReader("x"), free); code != test.status || time.Since(begun) > patience {
					t.Errorf("%d, after %s", code, time.Since(begun))
				}
				synctest.Wait()
				if dropped := len(all) == 1; dropped != (test.status == 200) {
					t.Errorf("one was dropped: %v", dropped)
				} else if dropped {
					if e := <-all; e.body == 0 || e.code != http.StatusRequestTimeout {
						t.Errorf("number %d was dropped with %d", e.body, e.code)
					}
				}
				close(end)
				synctest.Wait()
				for len(all) > 0 {
					if e := <-all; e.code != 200 {
						t.Errorf("number %d ended with %d", e.body, e.code)
					}
				}
			})
		})
	}
}

// TestSlow: the server ends the connection of a client that sends or reads nothing.
func TestSlow(t *testing.T) {
	soon := 300 * time.Millisecond
	stream := func(*http.Request) bool { return true }
	for name, test := range map[string]struct {
		options    GuardOptions
		sent, want string
	}{
		"nothing":                            {GuardOptions{Header: soon}, "", ""},
		"a part of the headers":              {GuardOptions{Header: soon}, "POST / HTTP/1.1\r\nHost: a\r\n", ""},
		"a part of a body":                   {GuardOptions{Arrive: soon}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 408 "},
		"a part of a stream":                 {GuardOptions{Stall: soon, Streams: stream}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "HTTP/1.1 408 "},
		"a part of a refused body":           {GuardOptions{Arrive: soon, Local: true}, "POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 421 "},
		"a part of a body that nobody reads": {GuardOptions{Arrive: soon, Public: []string{"/"}}, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 200 "},
		"a part of a body that is too long": {
			GuardOptions{Arrive: soon, Body: 5}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n", "HTTP/1.1 413 ",
		},
		"no chunk":         {GuardOptions{}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"no more requests": {GuardOptions{Idle: soon}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 "},
		"large headers":    {GuardOptions{}, "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, echo, test.options)
			must.Get(io.WriteString(c, test.sent))(t)
			got, _ := io.ReadAll(c) // the server ends it
			if !strings.HasPrefix(string(got), test.want) || test.want == "" && len(got) > 0 {
				t.Errorf("%s", got)
			}
		})
	}
	t.Run("it does not read", func(t *testing.T) {
		t.Parallel()
		written := make(chan error, 1)
		c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			large := make([]byte, 1<<20)
			var err error
			for err == nil {
				_, err = w.Write(large)
			}
			written <- err
		}, GuardOptions{Stall: soon})
		must.Get(io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
		if err := <-written; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// connect starts a server, and opens a connection to it.
func connect(t *testing.T, h http.HandlerFunc, o GuardOptions) net.Conn {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := newServer(guarded(t, h, o), o)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// deadlines is a response that records the last read deadline.
type deadlines struct {
	http.ResponseWriter
	last time.Time
	set  int
}

// SetReadDeadline is the method that http.ResponseController looks for.
func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.last = t
	d.set++
	return nil
}

// TestLiftedDeadline: the deadline of a body does not apply to the work after it. Meanwhile the
// server continues to read, to notice a disconnect.
func TestLiftedDeadline(t *testing.T) {
	for name, streams := range map[string]bool{"whole": false, "stream": true} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		g := guarded(t, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := r.Body.Read(make([]byte, 1)); err != nil || w.last.IsZero() {
				t.Errorf("%s: %v, until %s", name, err, w.last)
			}
			if _, err := io.ReadAll(r.Body); err != nil || !w.last.IsZero() || w.set < 3 {
				t.Errorf("%s: %v, until %s", name, err, w.last)
			}
		}, GuardOptions{Streams: func(*http.Request) bool { return streams }})
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("abc")))
	}
}

func TestTokensOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		replace(t, path, []byte(text))
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	write("first-secret-token\n")
	all := must.Get(NewTokens("", path, logger))(t)
	check := func(when, token string, want bool) {
		t.Helper()
		if got := all.admit("Bearer " + token); got != want {
			t.Errorf("%s: %s: %v", when, token, got)
		}
	}
	check("first", "first-secret-token", true)
	write("second-secret-token\n")
	check("replaced", "first-secret-token", false)
	check("replaced", "second-secret-token", true)
	write("short\n")
	check("unusable", "short", false)
	check("unusable", "second-secret-token", true)
	must.Do(t, os.Remove(path))
	check("removed", "second-secret-token", true)
	write("third-secret-token\n")
	check("back", "second-secret-token", false)
	check("back", "third-secret-token", true)
	write("\ufeffof-an-editor-on-windows\r\n")
	check("a byte order mark", "of-an-editor-on-windows", true)
	if got := log.String(); strings.Count(got, "level=ERROR") != 1 || strings.Contains(got, "secret") || strings.Contains(got, "short") {
		t.Errorf("%s", got)
	}
	for text, want := range map[string]string{"\n#\n": "no token", "short": "line 1", token + "\nwith a space in it": "line 2", strings.Repeat("x", 1<<20): "too long"} {
		if _, err := NewTokens(text, "", logger); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if all, err := NewTokens("", "", logger); all != nil || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}
