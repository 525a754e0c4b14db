package milvus

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
)

// withEngine is the environment variable that enables the tests with a real milvusEngine, which take
// minutes.
const withEngine = "RACFLOW_TEST_MILVUS"

var install = sync.OnceValues(func() (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("../../../../.ci/milvus", "install")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
})

// milvusEngine is a test's own Milvus server, on loopback.
type milvusEngine struct {
	t       testing.TB
	address string
	file    string
	cmd     *exec.Cmd
	log     bytes.Buffer
	killed  atomic.Bool
	ended   chan struct{}
}

// startEngine starts a server with its own port and file: two servers on one port would not notice each other. The
// server ends with the test.
func startEngine(t testing.TB) *milvusEngine {
	t.Helper()
	if os.Getenv(withEngine) == "" {
		t.Skip("it takes minutes with a real Milvus engine: set " + withEngine + " to 1")
	}
	e := &milvusEngine{t: t, address: freeAddress(t), file: filepath.Join(t.TempDir(), "milvus.db")}
	e.start()
	t.Cleanup(e.kill)
	return e
}

// freeAddress returns a free loopback address. Its port is below the ports that a system gives to connections: one of
// these could take the port before the server starts, or while the server is down.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))); err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port was found")
	return ""
}

func (e *milvusEngine) start() {
	e.t.Helper()
	path, err := install()
	if err != nil {
		e.t.Fatalf("the Milvus engine cannot be had: %v", err)
	}
	e.cmd = exec.Command(path, e.file, e.address, "ERROR")
	e.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(path), "HOME="+filepath.Dir(e.file))
	e.cmd.Stdout, e.cmd.Stderr = &e.log, &e.log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.killed.Store(false)
	e.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		if err := cmd.Wait(); !e.killed.Load() { // else checks would wait for it without a word
			e.t.Errorf("the engine ended by itself: %v\n%s", err, e.log.Bytes())
		}
	}(e.cmd, e.ended)
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", e.address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(until) {
			e.kill()
			e.t.Fatalf("the engine did not start: %s", e.log.Bytes())
		}
	}
}

// kill ends the server at once, as a power failure would.
func (e *milvusEngine) kill() {
	if e.cmd != nil {
		e.killed.Store(true)
		_ = e.cmd.Process.Kill()
		<-e.ended
		e.cmd = nil
	}
}

// config returns the config of a stage without arguments, for a server.
func (e *milvusEngine) config() config {
	return config{
		ServerConfig: table.ServerConfig{Address: e.address, ConnectTimeout: 5 * time.Second, CallTimeout: 20 * time.Second, RetryTime: 20 * time.Second},
		Options: table.Options{
			Prefix: "racflow", Index: "FLAT", SparseIndex: "SPARSE_INVERTED_INDEX", K1: 1.2, B: 0.75,
			Consistency: "session", Shards: 1, Replicas: 1, BatchRows: 1000, BatchBytes: 8 << 20,
		},
	}
}

// openStore opens a store; it is closed when the test ends.
func openStore(t testing.TB, c config) *store {
	t.Helper()
	s, err := open(context.Background(), sdk.Setup{}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.(*store).Close() })
	return s.(*store)
}
