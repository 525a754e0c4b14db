//go:build linux

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// chaos is a run on many machines and what happens to it.
type chaos struct {
	t       *testing.T
	servers *natsServers
	workers []*chaoticWorker
	draw    *rand.Rand
	claim   time.Duration

	mu        sync.Mutex
	broken    bool // a server is away, or behind
	repairs   sync.WaitGroup
	did       map[string]int
	underway  int // calls that may have been lost
	atOnce    int // calls at a time
	callerRun func(resume bool) *process
}

// chaoticWorker is a worker behind a network of its own, which may break.
type chaoticWorker struct {
	*process
	dir  string
	net  *partition
	busy bool // something happens to it
}

func (w *chaoticWorker) start(t *testing.T) {
	w.process = workerIn(t, w.dir, w.net.urls, "--jobs", "2")
}

// happens does something at random, and returns what, or nothing where that cannot be now.
func (c *chaos) happens(caller **process) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[c.draw.IntN(len(c.workers))]
	switch n := c.draw.IntN(20); {
	case n < 6 && !w.busy:
		w.kill()
		c.underway += c.atOnce
		c.later(w, c.draw.IntN(1000), func() { w.start(c.t) })
		return "kill -9 of a worker"
	case n < 10 && !w.busy:
		stages := childrenOf(w.Process.Pid)
		if len(stages) == 0 {
			return ""
		}
		if syscall.Kill(stages[c.draw.IntN(len(stages))], syscall.SIGKILL) != nil {
			return ""
		}
		c.underway += c.atOnce
		return "kill -9 of a stage in a worker"
	case n < 14 && !c.broken:
		s := c.servers.all[c.draw.IntN(len(c.servers.all))]
		s.kill()
		c.underway += c.atOnce // claims may end while the others elect who leads
		c.broken = true
		away := time.Duration(c.draw.IntN(2000)) * time.Millisecond
		c.repairs.Go(func() {
			time.Sleep(away)
			s.start()
			c.servers.await()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.broken = false
		})
		return "kill -9 of a server"
	case n < 16:
		select {
		case <-(*caller).ended:
			return ""
		default:
		}
		(*caller).kill()
		c.underway += c.atOnce // workers drop what they have in hand when the next one begins
		*caller = c.callerRun(true)
		return "kill -9 of the caller"
	case n < 18 && !w.busy:
		cut := c.draw.IntN(2) == 0
		w.net.isolate(cut)
		c.underway += c.atOnce
		c.later(w, c.draw.IntN(int((2 * c.claim).Milliseconds())), w.net.heal)
		if cut {
			return "cut of a worker's network"
		}
		return "silence of a worker's network"
	case n >= 18 && !w.busy:
		if syscall.Kill(w.Process.Pid, syscall.SIGSTOP) != nil {
			return ""
		}
		c.underway += c.atOnce
		pid := w.Process.Pid
		c.later(w, int((c.claim + 2*time.Second).Milliseconds()), func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		return "stop of a worker beyond its claim"
	}
	return ""
}

// later repairs a worker after so many milliseconds.
func (c *chaos) later(w *chaoticWorker, ms int, repair func()) {
	w.busy = true
	c.repairs.Go(func() {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		repair()
		w.busy = false
	})
}

// TestClusterChaos kills workers, stages in them, servers and the caller, breaks networks and stops workers for
// longer than their batches are theirs, at random: every item is in the output once, with the answer that a run
// on one machine gives, and only calls that were under way are paid for twice. RACFLOW_TEST_CLUSTER_KILLS says how often,
// RACFLOW_TEST_SEED repeats what was drawn.
func TestClusterChaos(t *testing.T) {
	leaveTo(t, "cluster", "servers take long to agree again")
	kills, items := envNumber(t, "RACFLOW_TEST_CLUSTER_KILLS", 10), 1500
	if kills <= 20 {
		items = 500
	}
	seed := uint64(envNumber(t, "RACFLOW_TEST_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("RACFLOW_TEST_SEED=%d", seed)

	dir := clusterFolder(t, items)
	args := []string{"-var", "below=2", "-var", "concurrency=4"}
	quick := modelserver.Serve(t, modelserver.Options{Answer: labelOf})
	ends(t, clusterRun(t, dir, "local", "", append(args, "-var", "url="+quick.URL)...), slow)

	c := &chaos{t: t, servers: startServers(t, 3), draw: rand.New(rand.NewPCG(seed, 22)), claim: 3 * time.Second, did: map[string]int{}, atOnce: 4}
	for range 4 {
		w := &chaoticWorker{dir: t.TempDir(), net: newPartition(t, c.servers)}
		w.start(t)
		c.workers = append(c.workers, w)
	}
	happened := 0
	for round := 1; happened < kills; round++ {
		model := modelserver.Serve(t, modelserver.Options{Answer: labelOf, Latency: 200 * time.Millisecond})
		name := fmt.Sprintf("round%d", round)
		c.underway = 0
		c.callerRun = func(resume bool) *process {
			more := append(args, "-var", "url="+model.URL, "--claim", c.claim.String())
			if kept, _ := filepath.Glob(filepath.Join(dir, name+".state", "runs", "*", "manifest.json")); resume && len(kept) > 0 {
				more = append(more, "--resume")
			}
			return begin(t, clusterRun(t, dir, name, c.servers.url(), more...))
		}
		caller, start := c.callerRun(false), time.Now()
		for ended := false; !ended; {
			pause := time.Duration(200+c.draw.IntN(1200)) * time.Millisecond
			if happened >= kills {
				pause = 5 * time.Minute
			}
			select {
			case <-caller.ended:
				ended = true
				continue
			case <-time.After(pause):
			}
			if happened >= kills {
				t.Fatalf("round %d does not end\n%s", round, caller.said())
			}
			if model.Calls() == 0 { // until then nothing is paid for
				continue
			}
			if what := c.happens(&caller); what != "" {
				happened++
				c.did[what]++
				t.Logf("%6.2f s: %s", time.Since(start).Seconds(), what)
			}
		}
		if code := caller.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("round %d: exit code %d\n%s", round, code, caller.said())
		}
		sameOutput(t, dir, "local", name)
		doubled := model.Doubled(2) / 2
		t.Logf("round %d: %v, %d of %d calls were paid twice, at most %d were under way at kills", round, time.Since(start), doubled, model.Calls(), c.underway)
		if doubled > c.underway {
			t.Errorf("%d calls were paid twice, and at most %d were under way", doubled, c.underway)
		}
		if t.Failed() {
			for i, w := range c.workers {
				t.Logf("worker %d:\n%s", i, w.said())
			}
			t.FailNow()
		}
		c.repairs.Wait()
	}
	t.Log(c.did)
}

// envNumber is the number that an environment variable holds, or another where it holds none.
func envNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
