//go:build linux

package cli

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

type napConfig struct {
	Each time.Duration `config:"each" doc:"How long it sleeps for an item."`
}

// nap is a voter that takes its time, one batch after the other, and no processor.
type nap struct {
	config napConfig
	mu     sync.Mutex
}

func napPlugin() {
	stage := sdk.SampleStage("voter", "", func(_ context.Context, _ sdk.Setup, c napConfig) (sdk.Sampler, error) {
		return &nap{config: c}, nil
	}, sdk.Reads(sdk.ColumnText))
	serve.Plugin(sdk.Plugin{Name: "nap", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

func (n *nap) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	time.Sleep(time.Duration(len(b.Items)) * n.config.Each)
	all := make([][]sdk.Sample, len(b.Items))
	for i := range all {
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: "rested", Weight: 1}}}}
	}
	return all, nil
}

const napFile = `
pipeline "p" {
  input { path = "items.tsv" }
  sample "nap" {
    use     = "nap/voter"
    workers = 1 # process
    config { each = "2ms" }
  }
  elect "e" { use = "majority" }
}
`

// TestClusterScale has a stage that sleeps: four workers do four times what one does.
func TestClusterScale(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares rates")
	}
	const items = 6000
	servers := startServers(t, 1)
	dir := clusterFolder(t, items)
	write(t, dir, "p.hcl", napFile)
	plugins := t.TempDir()
	linkPlugin(t, plugins, "nap")
	rates := map[int]float64{}
	running := 0
	for _, n := range []int{1, 4} {
		for ; running < n; running++ {
			startWorker(t, servers.url(), "--plugins", plugins)
		}
		name := map[int]string{1: "one", 4: "four"}[n]
		rate := arrivals(t, servers.url())
		ends(t, clusterRun(t, dir, name, servers.url(), "--plugins", plugins), slow)
		rates[n] = rate()
	}
	sameOutput(t, dir, "one", "four")
	times := rates[4] / rates[1]
	t.Logf("%.1f and %.1f batches a second: %.2f times", rates[1], rates[4], times)
	least := 1.5 // of a machine that may do other things
	if os.Getenv("RACFLOW_RATE") != "" {
		least = 3.4
	}
	if times < least {
		t.Errorf("four workers do %.2f times what one does", times)
	}
}

// arrivals notes when the batches of the next run are answered at the servers, until the test ends or stop is
// called, which returns how many there are in a second between a fifth and four fifths of them.
func arrivals(t *testing.T, urls string) (stop func() float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := bus.Connect(ctx, bus.Options{Servers: urls, Name: "watch"})
	if err != nil {
		t.Fatal(err)
	}
	before, err := conn.Runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ids := conn.Watch(ctx)
	var at []time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for id := range ids {
			if slices.Contains(before, id) {
				continue
			}
			run, err := conn.Open(ctx, id)
			if err != nil {
				continue
			}
			for _, err := range run.Results(ctx, 0) {
				if err == nil {
					at = append(at, time.Now())
				}
			}
			return
		}
	}()
	return func() float64 {
		cancel()
		<-done
		conn.Close()
		if len(at) < 20 {
			t.Fatalf("%d batches were answered", len(at))
		}
		from, to := len(at)/5, len(at)*4/5
		return float64(to-from) / at[to].Sub(at[from]).Seconds()
	}
}

// TestClusterOverhead compares the processor time of a run here with that of the same on one worker and on three, with the
// three servers of examples/cluster: of all processes, in turns.
func TestClusterOverhead(t *testing.T) {
	if os.Getenv("RACFLOW_RATE") == "" {
		t.Skip("RACFLOW_RATE is not set: it compares long runs, on a machine that does nothing else")
	}
	const items, turns = 20_000, 2 // so many that the start of processes is a small part
	dir := clusterFolder(t, items)
	used := map[int]time.Duration{} // by the number of workers; 0: without servers
	for range turns {
		local := begin(t, clusterRun(t, dir, "local", ""))
		local.good(slow)
		used[0] += processorTime(local)
		t.Logf("here %v", processorTime(local))
		for _, n := range []int{1, 3} {
			e := newExample(t)
			e.start(t, 3)
			e.bus(t, "caller").Close() // they serve
			var workers []*process
			for range n {
				workers = append(workers, startWorker(t, e.urls, e.as("worker")...))
			}
			caller := begin(t, clusterRun(t, dir, "remote", e.urls, e.as("caller")...))
			caller.good(slow)
			sameOutput(t, dir, "local", "remote")
			var working, serving time.Duration
			for _, w := range workers {
				if err := w.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				w.wait(slow)
				working += processorTime(w)
			}
			for _, s := range e.all {
				s.kill()
				serving += s.command.ProcessState.UserTime() + s.command.ProcessState.SystemTime()
			}
			used[n] += processorTime(caller) + working + serving
			t.Logf("caller %v, workers %v, servers %v", processorTime(caller), working, serving)
		}
	}
	for _, n := range []int{1, 3} {
		more := float64(used[n])/float64(used[0]) - 1
		t.Logf("%d items: %v of processors here, %v on %d workers: %.0f %% more", items, used[0]/turns, used[n]/turns, n, 100*more)
		if more > 0.5 { // 0.08 and 0.15 are aimed at: see examples/cluster/SCALE.md
			t.Errorf("%d workers take %.0f %% more of processors", n, 100*more)
		}
	}
}

// processorTime is that of a process that has ended, and of its stages, which it has waited for.
func processorTime(p *process) time.Duration {
	return p.ProcessState.UserTime() + p.ProcessState.SystemTime()
}
