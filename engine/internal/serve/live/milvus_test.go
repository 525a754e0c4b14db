package live

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// milvusServer is the process id of the current test's server; 0: none.
var milvusServer int

// milvus starts a Milvus server on loopback, which ends with the test, and returns its address.
func milvus(t *testing.T) string {
	t.Helper()
	if os.Getenv("RACFLOW_TEST_MILVUS") == "" {
		t.Skip("it takes minutes with a real Milvus engine: set RACFLOW_TEST_MILVUS to 1")
	}
	port, address := "", ""
	for address == "" { // below the ports that a system gives to connections
		port = strconv.Itoa(20_000 + rand.IntN(10_000))
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			address = listener.Addr().String()
			listener.Close()
		}
	}
	c := exec.Command("../../../../.ci/milvus", "run", port, filepath.Join(t.TempDir(), "milvus.db"))
	must.Do(t, c.Start())
	milvusServer = c.Process.Pid
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		milvusServer = 0
	})
	for again := (support.Backoff{First: 50e6, Max: 50e6}); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		if support.SleepFor(t.Context(), again.Delay(1)) != nil {
			t.Fatalf("the engine did not start: %v", err)
		}
	}
}

// inMilvus returns the pipeline intent with its knowledge on a server of the test. The vectors are
// short, since the server takes memory for many vectors of each collection.
func inMilvus(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer(
		`embed { use = "hashing" }`, "embed {\n    use = \"hashing\"\n    config { dimension = 256 }\n  }",
		`store { use = "local" }`, fmt.Sprintf("store {\n    use = \"milvus\"\n    config {\n      address = %q\n      index   = \"FLAT\"\n    }\n  }", milvus(t)),
	).Replace(intent)
}

func TestMilvusRebuild(t *testing.T) { testRebuild(t, inMilvus(t)) }

func TestMilvusRunBeside(t *testing.T) { testRunBeside(t, inMilvus(t)) }

func TestMilvusSwapUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("TestMilvusRebuild swaps without a load, and TestSwapUnderLoad without Milvus")
	}
	testSwapUnderLoad(t, inMilvus(t))
}

func TestMilvusKilled(t *testing.T) { testKilled(t, inMilvus(t)) }
