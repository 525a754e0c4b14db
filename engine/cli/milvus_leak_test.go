//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The credentials of these tests, and a login with each of them.
const (
	milvusPassword = `pass-hush&"word`
	milvusToken    = "tok-hush-en"
)

var milvusLogins = map[string][]string{
	"token":    {"MILVUS_TOKEN=" + milvusToken},
	"password": {"MILVUS_USER=root", "MILVUS_PASSWORD=" + milvusPassword},
}

const milvusLoginFile = `
knowledge "texts" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = 128 }
  }
  store {
    use = "milvus"
    config {
      address         = env("MILVUS_ADDRESS", "")
      user            = env("MILVUS_USER", "")
      password        = secret("MILVUS_PASSWORD", "")
      token           = secret("MILVUS_TOKEN", "")
      connect_timeout = env("CONNECT_TIMEOUT", "500ms")
      retry_time      = "500ms"
    }
  }
}

pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.texts }
  sample "neighbours" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`

// tattler is a server that refuses every login and reveals the login.
type tattler struct {
	milvuspb.UnimplementedMilvusServiceServer
	byStatus bool // in the reply, as a Milvus server does, and otherwise by gRPC
}

func (t *tattler) Connect(ctx context.Context, _ *milvuspb.ConnectRequest) (*milvuspb.ConnectResponse, error) {
	given, _ := metadata.FromIncomingContext(ctx)
	encoded := strings.Join(given.Get("authorization"), ",")
	plain, _ := base64.StdEncoding.DecodeString(encoded)
	_, password, _ := strings.Cut(string(plain), ":")
	text := fmt.Sprintf("auth check failure of %s, which is %s or %q, with password [%s]", encoded, plain, plain, password)
	if t.byStatus {
		return &milvuspb.ConnectResponse{Status: &commonpb.Status{Code: 1400, ErrorCode: commonpb.ErrorCode_PermissionDenied, Reason: text}}, nil //nolint:staticcheck // all that Milvus before 2.3 sets
	}
	return nil, status.Error(codes.Unauthenticated, text)
}

func (t *tattler) start(tt *testing.T) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tt.Fatal(err)
	}
	server := grpc.NewServer()
	milvuspb.RegisterMilvusServiceServer(server, t)
	go server.Serve(listener)
	tt.Cleanup(server.Stop)
	return listener.Addr().String()
}

// silentServer accepts connections and answers nothing.
func silentServer(t *testing.T) (address string) {
	address, _ = listenSilently(t)
	return address
}

// listenSilently is a silentServer that reports each connection.
func listenSilently(t *testing.T) (address string, connected <-chan struct{}) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan struct{}, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			select {
			case reported <- struct{}{}:
			default: // nobody has read the last report yet
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return listener.Addr().String(), reported
}

// untrusted is a server with an unknown certificate.
func untrusted(t *testing.T) (address string) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return "https://" + server.Listener.Addr().String()
}

// leakedFolder makes a folder for runs with credentials. When the test ends, its files must not
// contain them.
func leakedFolder(t *testing.T) string {
	t.Helper()
	dir := folder(t, map[string]string{"p.hcl": milvusLoginFile, "rows.tsv": rows(20), "items.tsv": rows(5)})
	t.Cleanup(func() {
		for _, credential := range credentials {
			checkFiles(t, dir, credential)
		}
	})
	return dir
}

// credentials are the common part of both credentials, and the forms in which they travel to a
// server.
var credentials = []string{
	"hush", base64.StdEncoding.EncodeToString([]byte(milvusToken)), base64.StdEncoding.EncodeToString([]byte("root:" + milvusPassword)),
}

func checkNoCredential(t *testing.T, where, text string) {
	t.Helper()
	for _, credential := range credentials {
		if strings.Contains(text, credential) {
			t.Errorf("%s holds %q", where, credential)
		}
	}
}

// tellingLines returns the lines with a credential, or the last lines.
func tellingLines(said string) string {
	var telling []string
	all := strings.Split(said, "\n")
	for _, line := range all {
		if slices.ContainsFunc(credentials, func(c string) bool { return strings.Contains(line, c) }) {
			telling = append(telling, line)
		}
	}
	if telling == nil {
		telling = all[max(0, len(all)-20):]
	}
	return strings.Join(telling, "\n")
}

// credentialRun returns a verb with credentials and the most verbose log.
func credentialRun(t *testing.T, dir, address string, login []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, dir, args...)
	c.Env = append(os.Environ(), "MILVUS_ADDRESS="+address, "RACFLOW_LOG=debug", "GODEBUG=http2debug=2",
		"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=99", "GRPC_TRACE=all", "RACFLOW_DUMPABLE=1")
	c.Env = append(c.Env, login...)
	said := &bytes.Buffer{}
	c.Stdout, c.Stderr = said, said
	return c, said
}

// TestMilvusCredentialsOfAFailure gives credentials to runs that fail in every way that involves the
// server.
func TestMilvusCredentialsOfAFailure(t *testing.T) {
	leaveTo(t, "command", "it is a run for each way to fail")
	for _, test := range []struct {
		name    string
		address func(*testing.T) string
		wait    string // for a connection; long if the server answers, for busy machines
		want    string
	}{
		{"nobody listens", func(t *testing.T) string { return "127.0.0.1:" + freePort(t) }, "500ms", "is the server running there?"},
		{"no address", func(*testing.T) string { return "nowhere:nothing:at all" }, "500ms", "its value does not fit"},
		{"no answer", silentServer, "500ms", "is the server running there?"},
		{"refused by gRPC", (&tattler{}).start, "30s", "refuses the user name, password or token"},
		{"refused in a reply", (&tattler{byStatus: true}).start, "30s", "refuses the user name, password or token"},
		{"TLS to one without", func(t *testing.T) string { return "https://" + (&tattler{}).start(t) }, "5s", "with TLS and a certificate"},
		{"unknown authority", untrusted, "5s", "certificate"},
	} {
		for name, login := range milvusLogins {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				address := test.address(t)
				var verbs sync.WaitGroup // most wait for a connection
				for _, args := range [][]string{{"run", "p.hcl"}, {"plan", "p.hcl"}, {"eval", "--json", "p.hcl"}, {"knowledge", "list", "p.hcl"}} {
					c, said := credentialRun(t, leakedFolder(t), address, login, args...)
					c.Env = append(c.Env, "CONNECT_TIMEOUT="+test.wait, "GODEBUG=") // it logs the server's messages in an encoding of its own
					verbs.Go(func() {
						err := c.Run()
						checkNoCredential(t, "what is said", said.String())
						if err == nil || !strings.Contains(said.String(), test.want) {
							t.Errorf("%s: %v, want %q", args[0], err, test.want)
						}
						if t.Failed() {
							t.Logf("%s:\n%s", args[0], tellingLines(said.String()))
						}
					})
					if testing.Short() {
						break
					}
				}
				verbs.Wait()
			})
		}
	}
}

// TestMilvusCredentialsOfACrash ends the process of the store as the runtime does in a crash, with
// its full output.
func TestMilvusCredentialsOfACrash(t *testing.T) {
	for name, login := range milvusLogins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, connected := listenSilently(t)
			c, said := credentialRun(t, leakedFolder(t), address, append(login, "CONNECT_TIMEOUT=5s"), "run", "p.hcl")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			crashed := map[int]bool{}
			ended := make(chan error)
			go func() { ended <- c.Wait() }()
			for wait := true; wait; {
				atWork := false
				select {
				case err := <-ended:
					wait = false
					if err == nil {
						t.Error("the run succeeds")
					}
					continue
				case <-connected:
					atWork = true
				case <-time.After(20 * time.Millisecond):
				}
				for _, child := range childrenOf(c.Process.Pid) {
					cmdline, environ := readProc(child, "cmdline"), readProc(child, "environ")
					if !strings.Contains(cmdline, "plugin") {
						continue // still a copy of its parent, before it becomes the program
					}
					checkNoCredential(t, fmt.Sprintf("process %q", cmdline), cmdline+environ)
					if atWork && strings.Contains(cmdline, "store.") && !crashed[child] {
						crashed[child] = syscall.Kill(child, syscall.SIGQUIT) == nil
					}
				}
			}
			checkNoCredential(t, "what is said", said.String())
			if len(crashed) == 0 || !strings.Contains(said.String(), "SIGQUIT") {
				t.Errorf("no process has crashed: %v", crashed)
			}
			if t.Failed() {
				t.Logf("%s", tellingLines(said.String()))
			}
		})
	}
}

// TestMilvusCredentialsOfARun gives credentials to verbs that succeed.
func TestMilvusCredentialsOfARun(t *testing.T) {
	e := startEngine(t)
	for name, login := range milvusLogins {
		t.Run(name, func(t *testing.T) {
			dir := leakedFolder(t)
			all := [][]string{
				{"plan", "p.hcl"}, {"run", "p.hcl"}, {"run", "--format", "tsv", "p.hcl"}, {"run", "--format", "table", "p.hcl"}, {"run", "--output", "out.jsonl", "p.hcl"},
				{"eval", "p.hcl"}, {"eval", "--json", "p.hcl"}, {"validate", "p.hcl"}, {"fmt", "--check", "p.hcl"},
				{"knowledge", "list", "--json", "p.hcl"}, {"knowledge", "gc", "p.hcl"}, {"plan", "p.hcl"},
			}
			if testing.Short() { // the other verbs differ in ways that do not involve the server
				all = [][]string{{"plan", "p.hcl"}, {"run", "--output", "out.jsonl", "p.hcl"}, {"eval", "--json", "p.hcl"}, {"knowledge", "list", "--json", "p.hcl"}}
			}
			for _, args := range all {
				c, said := credentialRun(t, dir, e.address(), login, args...)
				err := c.Run()
				checkNoCredential(t, strings.Join(args, " "), said.String())
				if err != nil && args[0] != "fmt" {
					t.Errorf("%v: %v", args, err)
				}
				if t.Failed() {
					t.Fatalf("%s", tellingLines(said.String()))
				}
			}
		})
	}
}
