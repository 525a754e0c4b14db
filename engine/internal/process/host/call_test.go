package host

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// shared is a host that caches in memory and records the results of calls.
type shared struct {
	mu       sync.Mutex
	cache    map[sdk.Key][]byte
	profiles map[string]json.RawMessage
	calls    []sdk.Call
	ends     chan sdk.Result
}

func (s *shared) CacheGet(_ context.Context, keys []sdk.Key) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = s.cache[key]
	}
	return values, nil
}

func (s *shared) CachePut(_ context.Context, key sdk.Key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[key] = value
	return nil
}

func (s *shared) Profile(_ context.Context, endpoint, model string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profiles[endpoint+" "+model], nil
}

func (s *shared) KeepProfile(_ context.Context, endpoint, model string, profile json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[endpoint+" "+model] = profile
	return nil
}

func (s *shared) Acquire(_ context.Context, c sdk.Call) (func(sdk.Result), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	return func(r sdk.Result) { s.ends <- r }, nil
}

// A plugin's process reaches the engine's services, gets none of its own secrets back, and releases
// what it holds when it ends.
func TestServices(t *testing.T) {
	h, _ := newHost(t)
	s := &shared{cache: map[sdk.Key][]byte{}, profiles: map[string]json.RawMessage{}, ends: make(chan sdk.Result, 9)}
	p := start(t, h, Spec{Host: s, Config: []byte(`{"token": "hush-hush"}`), Secrets: []string{"hush-hush"}})
	if got, err := ask(t, p, "cache"); err != nil || got != "an answer" || len(s.cache) != 1 {
		t.Errorf("got %q, %v, %d values", got, err, len(s.cache))
	}
	if _, err := ask(t, p, "lease"); err == nil {
		t.Error("a process that was killed has answered")
	}
	for range 3 {
		if got := <-s.ends; got != (sdk.Result{Status: sdk.StatusLeft, Lost: true}) {
			t.Errorf("a call ended with %+v", got)
		}
	}
	if s.calls[0].Endpoint != "http://(secret).example" {
		t.Errorf("a call goes to %s", s.calls[0].Endpoint)
	}
	if got, err := ask(t, p, "cache"); err != nil || got != "an answer" {
		t.Errorf("of the next process: got %q, %v", got, err)
	}

	// The token without the certificate, or the reverse, gives no access.
	at, remove, err := h.shared.share(h.temp, s)
	must.Do(t, err)
	defer remove()
	pair, err := tls.X509KeyPair([]byte(at.CertificatePem), []byte(at.KeyPem))
	must.Do(t, err)
	for name, c := range map[string]struct {
		shown []tls.Certificate
		token string
		want  codes.Code
	}{
		"both":           {[]tls.Certificate{pair}, at.Token, codes.OK},
		"no certificate": {nil, at.Token, codes.Unavailable},
		"another token":  {[]tls.Certificate{pair}, "guess", codes.Unauthenticated},
	} {
		config := h.id.serving()
		config.RootCAs, config.Certificates, config.ServerName = h.id.dialing.RootCAs, c.shown, "localhost"
		conn, err := grpc.NewClient(at.Address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		must.Do(t, err)
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.TokenKey, c.token)
		_, err = stagepb.NewHostClient(conn).CacheGet(ctx, &stagepb.CacheGetRequest{})
		if status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		_ = conn.Close()
	}
}

// The certificate that plugins get opens the engine's services, but no stage, built-in or not.
func TestPluginsCallNoStage(t *testing.T) {
	h, _ := newHost(t)
	pair, err := tls.X509KeyPair([]byte(h.id.certificate), []byte(h.id.key))
	must.Do(t, err)
	sockets, err := filepath.Glob(filepath.Join(socketDir(start(t, h, Spec{})), "*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	for want, shown := range map[codes.Code][]tls.Certificate{codes.OK: h.id.dialing.Certificates, codes.Unavailable: {pair}} {
		config := h.id.dialing.Clone()
		config.Certificates = shown
		conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(credentials.NewTLS(config)))
		must.Do(t, err)
		if _, err = stagepb.NewStageClient(conn).Alive(t.Context(), &stagepb.AliveRequest{}); status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
		_ = conn.Close()
	}
}

// A process that a stage starts is no plugin.
func TestHandshakeIsForgotten(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{})
	environment, err := ask(t, p, "environment")
	if err != nil || !strings.Contains(environment, "PATH=") {
		t.Fatalf("got %q, %v", environment, err)
	}
	for _, name := range []string{wire.CookieKey, wire.StageKey, "PLUGIN_"} {
		if strings.Contains(environment, name) {
			t.Errorf("%s is in the environment: %s", name, environment)
		}
	}
}

// A restarted process works with the values that its predecessor chose.
func TestResolvedValuesStay(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "chooser"})
	before, err := ask(t, p, "choice")
	if err != nil || !strings.HasPrefix(before, "chosen by ") || p.Resolved()["precision"] != before {
		t.Fatalf("got %q, %v, resolved %v", before, err, p.Resolved())
	}
	if _, err := ask(t, p, "crash"); err == nil {
		t.Fatal("it did not crash")
	}
	if after, err := ask(t, p, "choice"); after != before || err != nil {
		t.Errorf("got %q, %v, before it was %q", after, err, before)
	}
	given := start(t, h, Spec{Kind: sdk.KindSample, Use: "chooser", Config: []byte(`{"precision": "int8"}`)})
	if got, err := ask(t, given, "choice"); got != "int8" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// The output of a crashing Go program is cut to its first lines, and names the position in the
// program's own code.
func TestTrace(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		what  string
		stack []string
	}{
		"a panic": {`working
panic: out of cheese

goroutine 14 [running]:
main.aside(...)
	/src/main.go:146
created by main.make in goroutine 13
	/src/main.go:105 +0x5cc

goroutine 1 [chan receive]:
main.main()
	/src/main.go:9 +0x1
`, "panic: out of cheese at /src/main.go:146", []string{"panic: out of cheese", "goroutine 14 [running]:", "main.aside(...)", "\t/src/main.go:146", "created by main.make in goroutine 13", "\t/src/main.go:105 +0x5cc", "goroutine 1 [chan receive]:", "main.main()", "\t/src/main.go:9 +0x1"}},
		"nil": {`panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48]
goroutine 7 [running]:
panic({0x1, 0x2})
	/go/src/runtime/panic.go:783 +0x132
main.deep(0x0)
	/src/main.go:12 +0x3
`, "panic: runtime error: invalid memory address or nil pointer dereference at /src/main.go:12", []string{
			"panic: runtime error: invalid memory address or nil pointer dereference", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48]", "goroutine 7 [running]:", "panic({0x1, 0x2})", "\t/go/src/runtime/panic.go:783 +0x132", "main.deep(0x0)", "\t/src/main.go:12 +0x3",
		}},
		"a stack that overflows": {`runtime: goroutine stack exceeds 1000000000-byte limit
fatal error: stack overflow

runtime stack:
runtime.throw({0x1, 0x2})
	/go/src/runtime/panic.go:1094 +0x48
runtime.newstack()
	/go/src/runtime/stack.go:1159 +0x5bd

goroutine 30 gp=0x1 m=3 mp=0x4 [running]:
main.exhaust(0x1)
	/src/main.go:109 +0x2
main.exhaust(0x2)
	/src/main.go:109 +0x2
goroutine 31 [select]:
main.other()
	/src/main.go:1 +0x1
`, "fatal error: stack overflow at /src/main.go:109", []string{
			"fatal error: stack overflow", "runtime stack:", "runtime.throw({0x1, 0x2})", "\t/go/src/runtime/panic.go:1094 +0x48", "runtime.newstack()", "\t/go/src/runtime/stack.go:1159 +0x5bd",
			"goroutine 30 gp=0x1 m=3 mp=0x4 [running]:", "main.exhaust(0x1)", "\t/src/main.go:109 +0x2", "main.exhaust(0x2)", "\t/src/main.go:109 +0x2", "goroutine 31 [select]:",
		}},
		"an abort": {`SIGABRT: abort
PC=0x499da3 m=0 sigcode=0

goroutine 0 gp=0x2 m=0 [idle]:
runtime.futex(0x1)
	/go/src/runtime/sys_linux_amd64.s:557 +0x23

goroutine 12 [syscall]:
syscall.Kill(0x1)
	/go/src/syscall/zsyscall.go:5 +0x1
main.abort()
	/src/main.go:3 +0x4
goroutine 13 [select]:
`, "SIGABRT: abort at /go/src/syscall/zsyscall.go:5", []string{
			"SIGABRT: abort", "PC=0x499da3 m=0 sigcode=0", "goroutine 0 gp=0x2 m=0 [idle]:", "runtime.futex(0x1)", "\t/go/src/runtime/sys_linux_amd64.s:557 +0x23",
			"goroutine 12 [syscall]:", "syscall.Kill(0x1)", "\t/go/src/syscall/zsyscall.go:5 +0x1", "main.abort()", "\t/src/main.go:3 +0x4", "goroutine 13 [select]:",
		}},
		"no trace": {"a\nb\n", "", nil},
		"a long one": {"panic: x\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f()\n\t/src/main.go:7 +0x1\n", 50), "panic: x at /src/main.go:7",
			append([]string{"panic: x", "goroutine 1 [running]:"}, slices.Repeat([]string{"main.f()", "\t/src/main.go:7 +0x1"}, 5)...)},
	} {
		t.Run(name, func(t *testing.T) {
			var got trace
			for line := range strings.Lines(c.lines) {
				if line = strings.TrimRight(line, "\n"); line != "" { // as output does
					got.add(line)
				}
			}
			if got.what() != c.what || !slices.Equal(got.stack, c.stack) {
				t.Errorf("%q\n%s", got.what(), strings.Join(got.stack, "\n"))
			}
		})
	}
}
