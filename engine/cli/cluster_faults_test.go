//go:build linux

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestClusterServersAway takes away most of the servers in the middle of a run: the caller waits, says so, and goes on once they
// are there again.
func TestClusterServersAway(t *testing.T) {
	leaveTo(t, "cluster", "servers take long to agree again")
	const items = 1500
	dir := clusterFolder(t, items)
	model := modelserver.Serve(t, modelserver.Options{Answer: labelOf, Latency: 50 * time.Millisecond})
	args := []string{"-var", "url=" + model.URL, "-var", "concurrency=16"}
	ends(t, clusterRun(t, dir, "here", "", args...), slow)
	servers := startServers(t, 3)
	for range 2 {
		startWorker(t, servers.url())
	}
	p, before := begin(t, clusterRun(t, dir, "there", servers.url(), args...)), model.Calls()
	p.until("a quarter of the calls", func() bool { return model.Calls() >= before+items/4 })
	waits := func() int { return strings.Count(p.said(), "waiting: ") }
	earlier := waits()
	servers.all[0].kill()
	servers.all[1].kill()
	p.until("it waits for the servers", func() bool { return waits() > earlier })
	servers.all[0].start()
	servers.all[1].start()
	t.Log(p.good(slow))
	sameOutput(t, dir, "here", "there")
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
