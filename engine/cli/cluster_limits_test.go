//go:build linux

package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// clusterModel is a run that asks a model about every item on four workers.
type clusterModel struct {
	dir     string
	servers *natsServers
	model   *modelserver.Server
}

func newClusterModel(t *testing.T, items int, o modelserver.Options) *clusterModel {
	t.Helper()
	o.Answer = labelOf
	m := &clusterModel{dir: clusterFolder(t, items), servers: startServers(t, 1), model: modelserver.Serve(t, o)}
	for range 4 {
		startWorker(t, m.servers.url())
	}
	return m
}

func (m *clusterModel) begin(t *testing.T, args ...string) *process {
	t.Helper()
	return begin(t, clusterRun(t, m.dir, "out", m.servers.url(), append([]string{"-var", "url=" + m.model.URL}, args...)...))
}

// tokensOf are the tokens of the prompts of requests, as the server counts them.
func tokensOf(asks []modelserver.Ask) int {
	sum := 0
	for _, a := range asks {
		sum += len(a.Whole()) / 4
	}
	return sum
}

// TestClusterConcurrency has a service that takes 600 ms and 64 calls at a time, by four workers: it never gets
// more. With RACFLOW_RATE, where the machine does nothing else, it gets as many for nearly all the time.
func TestClusterConcurrency(t *testing.T) {
	leaveTo(t, "cluster", "package lease shows it on one machine")
	const atOnce, latency = 64, 600 * time.Millisecond
	asked, least := 640, 0.0
	if os.Getenv("RACFLOW_RATE") != "" {
		asked, least = 2560, 0.85
	}
	m := newClusterModel(t, asked, modelserver.Options{Latency: latency})
	p := m.begin(t, "-var", "concurrency=64")
	p.good(slow)
	asks := m.model.Asks()
	if len(asks) != asked || m.model.MostAtOnce() > atOnce {
		t.Errorf("%d calls, at most %d at once", len(asks), m.model.MostAtOnce())
	}
	from, to := asks[len(asks)/5], asks[len(asks)*4/5]
	rate := float64(to.Number-from.Number) / to.At.Sub(from.At).Seconds()
	share := rate / (atOnce / latency.Seconds())
	t.Logf("%.1f calls a second, %.1f %% of the ideal rate, at most %d at once", rate, 100*share, m.model.MostAtOnce())
	if share < least {
		t.Errorf("%.1f %% of the ideal rate", 100*share)
	}
}

// TestClusterBudget spends a budget on four workers: not more, and nearly all of it.
func TestClusterBudget(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	const budget = 60_000
	m := newClusterModel(t, 300, modelserver.Options{Latency: 20 * time.Millisecond})
	p := m.begin(t, "-var", "concurrency=16", "--max-tokens", "60000")
	code := p.wait(slow)
	out := readFile(t, m.dir, "out.jsonl")
	without, used := strings.Count(out, `"missing":["sample.llm"]`), tokensOf(m.model.Asks())
	t.Logf("%d of %d tokens by %d calls, %d items without the model\n%s", used, budget, m.model.Calls(), without, p.said())
	if code != exitItemsFailed || strings.Count(out, "\n") != 300 || without != 300-m.model.Calls() || used > budget || used < budget*7/10 {
		t.Errorf("exit code %d, %d lines, %d without the model, %d calls, %d of %d tokens", code, strings.Count(out, "\n"), without, m.model.Calls(), used, budget)
	}
}
