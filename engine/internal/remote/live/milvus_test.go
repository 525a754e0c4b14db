package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// milvusServer is the process of the server that the test at hand has started; 0: none.
var milvusServer int

// milvus starts a Milvus server on loopback, which ends with the test, and returns its address.
func milvus(t *testing.T) string {
	t.Helper()
	if os.Getenv("RACFLOW_TEST_MILVUS") == "" {
		t.Skip("it takes minutes with a real Milvus engine: set RACFLOW_TEST_MILVUS to 1")
	}
	port, address := "", ""
	for address == "" { // below those ports that a system gives to connections
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

// inMilvus is the pipeline intent with its knowledge on a server of the test's own. The server takes memory
// for many vectors of each collection, so these are short.
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

// TestMilvusRunsBesideALoad turns the labels of all rows round and round while requests are answered, and
// has runs over the same file change their own generation meanwhile: every answer is that of one of
// the two states, and that of the new one after each swap.
func TestMilvusRunsBesideALoad(t *testing.T) {
	if testing.Short() {
		t.Skip("TestMilvusRunBeside has a run beside requests, without a load")
	}
	intent := inMilvus(t)
	rows := func(turn int) string {
		return many(300, func(i int) string { return fmt.Sprintf("word%d thing%d\tlabel%d", i, i%7, (i+turn)%2) })
	}
	dir, o := folder(t, map[string]string{"p.hcl": strings.Replace(intent, "top_k = 3", "top_k = 1", 1), "rows.tsv": rows(0)})
	path := filepath.Join(dir, "p.hcl")
	p := started(t, o, path).Pipeline("intent")
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answered atomic.Int64
	for range 8 {
		load.Go(func() {
			for ctx.Err() == nil {
				r, err := p.Answer(context.Background(), engine.Item{Text: "word4 thing4"})
				if err != nil || r.Error != nil || r.Answer != "label0" && r.Answer != "label1" {
					t.Errorf("%+v, %v", r, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for turn := 1; turn <= 4; turn++ {
		write(t, filepath.Join(dir, "rows.tsv"), rows(turn))
		serving, before := fmt.Sprintf("label%d", (turn+1)%2), answered.Load()
		beside := must.Get(engine.Open(t.Context(), path, o.Engine))(t)
		r, err := beside.Answer(t.Context(), engine.Item{Text: "word4 thing4"})
		beside.Close()
		if want := fmt.Sprintf("label%d", turn%2); err != nil || string(r.Answer) != want {
			t.Fatalf("turn %d: a run answers %q, %v", turn, r.Answer, err)
		}
		// A reader looks for a newer commit every two seconds: by then it would see what the run has changed.
		for range 60 {
			if got := ask(t, p, "word4 thing4"); got != serving {
				t.Fatalf("turn %d: what is served answers %q after a run beside it", turn, got)
			}
			_ = support.SleepFor(t.Context(), 50e6)
		}
		must.Do(t, p.Rebuild(t.Context()))
		if got := ask(t, p, "word4 thing4"); got == serving {
			t.Errorf("turn %d: it is %q after the swap", turn, got)
		}
		if answered.Load() == before {
			t.Errorf("turn %d: nothing was answered meanwhile", turn)
		}
	}
	cancel()
	load.Wait()
	p.settled(t)
	all, superseded := generations(t, o, path)
	if len(superseded) > 0 {
		t.Errorf("these would be removed: %+v", superseded)
	}
	states := map[generation.State]int{}
	for _, g := range all {
		states[g.State]++
	}
	if states[generation.Current] != 1 || states[generation.Served] != 1 || len(states) != 2 {
		t.Errorf("the server has %v", states)
	}
}
