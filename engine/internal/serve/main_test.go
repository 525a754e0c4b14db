package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin workspace.Builtin

func TestMain(m *testing.M) {
	builtin = workspace.Serve(append(plugins.All(), enginetest.Alphabet(), enginetest.TheirsFile()))
	if to := os.Getenv(idling); to != "" {
		idle(to)
		return
	}
	os.Exit(m.Run())
}

// idling is an environment variable with an address and a number. With it, this program opens
// connections and waits until they are closed.
const idling = "RACFLOW_TEST_IDLE"

func idle(to string) {
	var address string
	var n int
	if _, err := fmt.Sscan(to, &address, &n); err != nil {
		panic(err)
	}
	all := make([]net.Conn, n)
	for i := range all {
		var err error
		if all[i], err = net.Dial("tcp", address); err != nil {
			panic(err)
		}
	}
	fmt.Println("connected")
	for _, c := range all {
		if got, err := io.ReadAll(c); err != nil || len(got) > 0 {
			panic(fmt.Sprintf("%s, %v", got, err))
		}
	}
}

// intent is a pipeline over the rows in a folder.
const intent = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "intent" {
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "vote" { use = "neighbours" }
  elect "e" {
    use    = "soft"
    accept = "answer in labels"
  }
}
`

// fruit are rows, and right the answers to their texts.
const fruit = "text\tlabel\nred apple\tfruit\ngreen pear\tfruit\nblue car\tvehicle\nfast train\tvehicle\n"

var right = map[string]string{"red apple": "fruit", "green pear": "fruit", "blue car": "vehicle", "fast train": "vehicle"}

// real is a server of a real pipeline.
type real struct {
	url, dir string
	set      *live.Set
	stop     func() // ends the server, and checks that it ends without errors
}

func serveStart(t testing.TB, o Options) *real {
	t.Helper()
	return startIn(t, t.TempDir(), intent, o)
}

// startIn writes a pipeline's file to a folder, with the rows of fruit, and serves it.
func startIn(t testing.TB, dir, intent string, o Options) *real {
	t.Helper()
	write(t, filepath.Join(dir, "p.hcl"), intent)
	write(t, filepath.Join(dir, "rows.tsv"), fruit)
	set, err := live.Open(context.Background(), []string{filepath.Join(dir, "p.hcl")}, live.Options{Engine: workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")}})
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, set.Start(t.Context()))
	s := must.Get(New(Of(set), o))(t)
	MountDecisions(s)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return &real{url: "http://" + l.Addr().String(), dir: dir, set: set, stop: func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		set.Close()
	}}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must.Do(t, os.Rename(path+".new", path))
}

// children returns the processes that this process has started: stages and their supervisors.
func children(t testing.TB) (pids []int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("the system does not say which processes this one has started")
	}
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children") // an error: the thread has ended
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
