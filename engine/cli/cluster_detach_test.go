//go:build linux

package cli

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestClusterDetach leaves a run to a worker, comes back to it from a folder that has nothing of it, is
// interrupted and comes back again.
func TestClusterDetach(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	servers := startServers(t, 1)
	dir := clusterFolder(t, 400)
	ends(t, racflow(t, dir, "run", "--state", "here.state", "--output", "here.tsv", "p.hcl"), slow)
	said := ends(t, racflow(t, dir, "run", "--state", "left.state", "--on", servers.url(), "--detach", "p.hcl"), slow)
	named := regexp.MustCompile(`racflow runs attach ([a-z0-9]+) --on `).FindStringSubmatch(said)
	if named == nil || !strings.Contains(said, ": 400 items in 4 batches (") {
		t.Fatalf("it does not say how to come back:\n%s", said)
	}
	far := t.TempDir()
	attach := []string{"runs", "attach", named[1], "--on", servers.url(), "--output", "there.tsv"}
	first := begin(t, racflow(t, far, attach...))
	first.says("nobody takes part: start racflow worker --on " + servers.url())
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := first.wait(slow); code != exitInterrupted || !strings.Contains(first.said(), "run "+named[1]+" stays at ") {
		t.Fatalf("exit code %d\n%s", code, first.said())
	}
	startWorker(t, servers.url())
	ends(t, racflow(t, far, attach...), slow)
	if got, want := readFile(t, far, "there.tsv"), readFile(t, dir, "here.tsv"); got != want {
		t.Errorf("%d bytes came back, want %d", len(got), len(want))
	}
	if p := begin(t, racflow(t, far, attach...)); p.wait(slow) != exitFailed || !strings.Contains(p.said(), "has ended, and its results were written") {
		t.Errorf("it was attached to again:\n%s", p.said())
	}
}

// Flags that do not go together are refused before anything starts, and before the servers are asked.
func TestClusterRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"run --on= p.hcl":                                 "it names no servers",
		"run --detach p.hcl":                              "name their NATS servers with --on",
		"run --on none --detach p.hcl":                    "--on none has none",
		"run --on nats://a --detach --calls 3 p.hcl":      "leave out --detach",
		"run --on nats://a --detach --again p.hcl":        "leave out --detach",
		"run --on nats://a --detach --output x.tsv p.hcl": "name the output when you come back",
		"run --on nats://a --claim 10ms p.hcl":            "at least 1s",
		"run --on nats://a --debug sample.knn p.hcl":      "leave out --on",
		"run --on nats://user:hush@a p.hcl":               "everybody on this machine could read",
		"runs attach newest --on nats://a":                "is not the name of a run at servers",
		"runs attach":                                     "name the run that was left",
		"runs attach --state nowhere run-000001":          "there is no run run-000001",
	} {
		if _, err := verb(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}
