//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestClusterServersAway takes away what the servers need, in the middle of a run: the caller waits, says so, and
// goes on once they have it again.
func TestClusterServersAway(t *testing.T) {
	leaveTo(t, "cluster", "servers take long to agree again")
	const items = 1500
	dir := clusterFolder(t, items)
	model := modelserver.Serve(t, modelserver.Options{Answer: labelOf, Latency: 50 * time.Millisecond})
	args := []string{"-var", "url=" + model.URL, "-var", "concurrency=16"}
	ends(t, clusterRun(t, dir, "local", "", args...), slow)
	halfway := func(p *process) {
		t.Helper()
		before := model.Calls()
		p.until("a quarter of the calls", func() bool { return model.Calls() >= before+items/4 })
	}
	finish := func(p *process, name string) {
		t.Helper()
		t.Log(p.good(slow))
		sameOutput(t, dir, "local", name)
	}
	t.Run("no quorum", func(t *testing.T) {
		servers := startServers(t, 3, "")
		for range 2 {
			startWorker(t, servers.url())
		}
		p := begin(t, clusterRun(t, dir, "quorum", servers.url(), args...))
		halfway(p)
		waits := strings.Count(p.said(), "waiting: ")
		servers.all[0].kill()
		servers.all[1].kill()
		p.waits(waits + 1)
		servers.all[0].start()
		servers.all[1].start()
		finish(p, "quorum")
	})
	t.Run("no server", func(t *testing.T) {
		servers := startServers(t, 1, "")
		startWorker(t, servers.url())
		p := begin(t, clusterRun(t, dir, "server", servers.url(), args...))
		halfway(p)
		servers.all[0].kill()
		p.waits(1)
		servers.all[0].start()
		finish(p, "server")
	})
	t.Run("a full disk", func(t *testing.T) {
		servers := startServers(t, 1, "")
		s := servers.all[0]
		s.kill()
		s.holds("300KB") // less than the items and their results take
		s.start()
		servers.await()
		startWorker(t, servers.url())
		p := begin(t, clusterRun(t, dir, "disk", servers.url(), args...))
		p.waits(1)
		s.kill()
		s.holds("1GB")
		s.start()
		finish(p, "disk")
	})
}

// TestClusterRefused has servers and workers that a caller cannot work with.
func TestClusterRefused(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	dir := clusterFolder(t, 10)
	plain := startServers(t, 1, "")
	none := startBare(t, "server_name: bare\n")
	closed := startBare(t, "server_name: closed\nauthorization { user: someone, password: secret }\n")
	for _, test := range []struct {
		name, urls string
		args       []string
		says       []string
	}{
		{"nobody listens", "nats://" + freeAddress(t), nil, []string{"nobody answers there", "start the servers"}},
		{"no JetStream", "nats://" + none, nil, []string{"JetStream"}},
		{"another account", "nats://" + closed, nil, []string{"check the credentials"}},
		{"no TLS", "tls://" + plain.all[0].address, nil, []string{"TLS"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, c := range []*process{
				begin(t, clusterRun(t, dir, "refused", test.urls, test.args...)),
				startWorker(t, test.urls),
			} {
				code := c.wait(slow)
				t.Logf("exit code %d: %s", code, c.said())
				if code != exitFailed {
					t.Errorf("exit code %d", code)
				}
				for _, text := range test.says {
					if !strings.Contains(c.said(), text) {
						t.Errorf("it does not say %q", text)
					}
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "refused.jsonl")); err == nil {
		t.Error("there is an output")
	}
}

// connect takes part in what servers pass on, until the test ends.
func connect(t *testing.T, urls string) *bus.Conn {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Options{Servers: urls, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestClusterOtherVersion has a run that another version began: a worker says so, and takes no part.
func TestClusterOtherVersion(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	servers := startServers(t, 1, "")
	dir := clusterFolder(t, 100)
	p := begin(t, clusterRun(t, dir, "out", servers.url()))
	conn := connect(t, servers.url())
	ids := conn.Watch(t.Context())
	run, err := conn.Open(t.Context(), <-ids)
	if err != nil {
		t.Fatal(err)
	}
	d, err := caller.DecodeDefinition(run.Definition())
	if err != nil {
		t.Fatal(err)
	}
	d.Run, d.Version = "another", "9.9.9"
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	another, err := conn.Create(t.Context(), bus.Config{ID: d.Run, Definition: data})
	if err != nil {
		t.Fatal(err)
	}
	if err := another.Publish(t.Context(), bus.Position{Part: 1, Seq: 1}, []byte("for that version alone")); err != nil {
		t.Fatal(err)
	}
	startWorker(t, servers.url())
	p.good(slow) // it works for the other
	for lacks := ""; lacks == ""; time.Sleep(100 * time.Millisecond) {
		states, err := another.All(t.Context(), caller.WorkerPrefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if w := jsonLines[caller.WorkerState](t, string(s.Value))[0]; w.State == caller.Lacks {
				lacks = strings.Join(w.Lacks, "; ")
			}
		}
		if lacks != "" && (!strings.Contains(lacks, "9.9.9") || !strings.Contains(lacks, "install")) {
			t.Errorf("it says %q", lacks)
		}
	}
	if n, err := another.Stored(t.Context()); n != 0 || err != nil {
		t.Errorf("%d results of a worker of another version, %v", n, err)
	}
}
