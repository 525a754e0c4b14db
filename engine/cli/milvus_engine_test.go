package cli

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

// milvusEngine is a Milvus server of a test, as `make milvus` starts one.
type milvusEngine struct {
	t      *testing.T
	port   string
	file   string
	prefix string // of the test's collections
	cmd    *exec.Cmd
	log    bytes.Buffer
}

// runningMilvus is the environment variable with the loopback port of a server that already runs.
const runningMilvus = "RACFLOW_TEST_MILVUS_PORT"

// engineFor returns the test's own server, or one that already runs, for tests that leave it running.
func engineFor(t *testing.T) *milvusEngine {
	t.Helper()
	if port := os.Getenv(runningMilvus); port != "" {
		return &milvusEngine{t: t, port: port, prefix: regexp.MustCompile(`[^A-Za-z]`).ReplaceAllString(t.Name(), "")[len("Test"):]}
	}
	return startEngine(t)
}

// env is the environment of a process that uses the server.
func (e *milvusEngine) env() []string {
	return append(os.Environ(), "MILVUS_ADDRESS="+e.address(), "MILVUS_PREFIX="+e.prefix)
}

func startEngine(t *testing.T) *milvusEngine {
	t.Helper()
	if os.Getenv(runningMilvus) != "" {
		t.Skip("it is for a server of its own, which it kills, or which has to be fast: not for one that runs already")
	}
	if os.Getenv("RACFLOW_TEST_MILVUS") == "" {
		t.Skip("it takes minutes with a real Milvus engine: set RACFLOW_TEST_MILVUS to 1")
	}
	e := &milvusEngine{t: t, port: freePort(t), file: filepath.Join(t.TempDir(), "milvus.db"), prefix: "racflow"}
	e.start()
	t.Cleanup(e.kill)
	return e
}

// freePort returns a loopback port on which nobody listens, below the ports that a system gives to
// connections: a connection could take such a port before the server does, or while the server is
// down.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			defer listener.Close()
			return port
		}
	}
	t.Fatal("no free port was found")
	return ""
}

func (e *milvusEngine) address() string { return "127.0.0.1:" + e.port }

// client returns a client of the server; it is closed when the test ends.
func (e *milvusEngine) client() client.Client {
	e.t.Helper()
	m, err := client.NewClient(e.t.Context(), client.Config{Address: e.address()})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { m.Close() })
	return m
}

func (e *milvusEngine) start() {
	e.t.Helper()
	e.cmd = exec.Command("../../.ci/milvus", "run", e.port, e.file)
	e.launch()
}

// launch starts the command and waits until it listens.
func (e *milvusEngine) launch() {
	e.t.Helper()
	e.cmd.Stdout, e.cmd.Stderr = &e.log, &e.log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	if err := awaitListener(e.address(), 2*time.Minute); err != nil {
		e.kill()
		e.t.Fatalf("the engine did not start: %v: %s", err, e.log.Bytes())
	}
}

// kill kills the server with signal 9.
func (e *milvusEngine) kill() {
	if e.cmd != nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
		e.cmd = nil
	}
}

// milvusFile is a pipeline over a knowledge in Milvus. Its server may be down for as long as retry
// says.
const milvusFile = `
variable "retry"    { default = "30s" }
variable "analyzer" { default = "standard" }

knowledge "texts" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = 128 }
  }
  store {
    use      = "milvus"
    analyzer = var.analyzer
    config {
      address         = env("MILVUS_ADDRESS", "")
      prefix          = env("MILVUS_PREFIX", "racflow")
      index           = "FLAT"
      connect_timeout = "2s"
      call_timeout    = "20s"
      retry_time      = var.retry
    }
  }
}

pipeline "p" {
  retrieve "near" { from = knowledge.texts }
  sample "neighbours" { use = "neighbours" }
  sample "prototype"  { use = "prototype" }
  elect "e" { use = "soft" }
}
`

// milvusFolder makes a folder with a pipeline over n rows and items to answer.
func milvusFolder(t *testing.T, n, items int) string {
	t.Helper()
	return folder(t, map[string]string{"p.hcl": milvusFile, "rows.tsv": rows(n), "items.tsv": rows(items)})
}

// awaitListener waits until somebody listens at an address.
func awaitListener(address string, within time.Duration) error {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Since(start) > within {
			return err
		}
	}
}
