//go:build linux

package cli

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestWorkerOfCalibrated: a worker elects by what the caller's election has learnt with answers of the
// model to examples, and asks about none.
func TestWorkerOfCalibrated(t *testing.T) {
	long(t)
	t.Setenv("OPENAI_API_KEY", "sk-worker")
	dir := t.TempDir()
	run := func(name, url string, more ...string) *process {
		return begin(t, racflow(t, dir, append([]string{"run", "-var", "embedder=hashing", "-var", "model=test", "-var", "base_url=" + url,
			"-var", "price={ input = 1, output = 1 }", "-set", "elect.intent.calibrate=30", "--limit", "20", "--state", name + ".state", "--output", name + ".jsonl"}, append(more, intent(t))...)...))
	}
	asked := map[string]int{}
	for _, name := range []string{"here", "there"} {
		model := modelserver.Serve(t, modelserver.Options{Key: "sk-worker", Answer: labelOf})
		var on []string
		if name == "there" {
			servers := startServers(t, 1, "")
			startWorker(t, servers.url())
			on = []string{"--on", servers.url()}
		}
		caller := run(name, model.URL, on...)
		if code := caller.wait(slow); code != 0 || strings.Contains(caller.said(), "not calibrated") {
			t.Fatalf("exit code %d\n%s", code, caller.said())
		}
		asked[name] = model.Calls()
	}
	sameOutput(t, dir, "here", "there")
	if asked["here"] != asked["there"] || asked["here"] < 30+20 {
		t.Errorf("requests: %v", asked)
	}
}
