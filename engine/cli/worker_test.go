//go:build linux

package cli

import (
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// valve lets so many calls of a model through, and keeps the others waiting.
type valve struct {
	mu      sync.Mutex
	changed *sync.Cond
	left    int
	waiting int
}

func newValve(calls int) *valve {
	v := &valve{left: calls}
	v.changed = sync.NewCond(&v.mu)
	return v
}

// answer is what a model says once its call is let through: one of two labels, as the text decides.
func (v *valve) answer(a modelserver.Ask, choice int) string {
	if v != nil && choice == 0 {
		v.mu.Lock()
		v.waiting++
		for v.left == 0 {
			v.changed.Wait()
		}
		v.waiting--
		v.left--
		v.mu.Unlock()
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.Text()))
	return []string{"order_status", "refund_status"}[(int(h.Sum32()%97)+choice)%2]
}

// let lets so many more through.
func (v *valve) let(calls int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left += calls
	v.changed.Broadcast()
}

// full waits until so many calls wait.
func (v *valve) full(t *testing.T, calls int, also ...*process) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		v.mu.Lock()
		waiting := v.waiting
		v.mu.Unlock()
		if waiting >= calls {
			return
		}
		if time.Since(start) > slow {
			for _, p := range also {
				t.Log(p.said())
			}
			t.Fatalf("%d calls are under way, want %d", waiting, calls)
		}
	}
}

// TestWorker takes the shipped pipeline with a model through workers of which one is told to end in the middle, one is
// killed and one has no key of the model: the results are those of a run on one machine, what is under way is
// answered by the one that ends, only calls that were under way at the kill are paid twice, and the key stays on its machine.
func TestWorker(t *testing.T) {
	long(t)
	const key, items, claim = "sk-worker-hush", "150", "3s"
	t.Setenv("OPENAI_API_KEY", key)
	dir := t.TempDir()
	run := func(name, url string, more ...string) *process {
		c := racflow(t, dir, append([]string{"run", "-var", "embedder=hashing", "-var", "election=soft", "-var", "model=test", "-var", "base_url=" + url,
			"--limit", items, "--state", name + ".state", "--output", name + ".jsonl"}, append(more, intent(t))...)...)
		return begin(t, c)
	}
	free := modelserver.Serve(t, modelserver.Options{Key: key, Answer: (*valve)(nil).answer})
	run("here", free.URL).good(slow)

	servers := startServers(t, 1, "")
	calls := newValve(30)
	model := modelserver.Serve(t, modelserver.Options{Key: key, Answer: calls.answer})
	t.Cleanup(func() { calls.let(1 << 20) })
	caller := run("there", model.URL, "--on", servers.url(), "--claim", claim)
	without := racflow(t, t.TempDir(), "worker", "--on", servers.url())
	without.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OPENAI_API_KEY=") })
	poor := begin(t, without)
	poor.says("OPENAI_API_KEY")
	caller.says("takes no part: the environment has no OPENAI_API_KEY")
	ended, killed := startWorker(t, servers.url(), "--jobs", "2"), startWorker(t, servers.url(), "--jobs", "2")
	for _, p := range []*process{ended, killed} {
		p.says("joined run")
	}
	calls.full(t, 8, ended, killed, caller) // that is the limit

	if err := ended.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended.says("no more batches are taken")
	for over := false; !over; {
		select {
		case <-ended.ended:
			over = true
		case <-time.After(20 * time.Millisecond):
			calls.let(2)
		}
	}
	if code := ended.wait(slow); code != 0 {
		t.Errorf("exit code %d of one that was told to end\n%s", code, ended.said())
	}
	calls.full(t, 1, killed, caller)
	killed.kill()
	select {
	case <-caller.ended:
		t.Fatalf("the run was over before all happened\n%s", caller.said())
	default:
	}
	last := startWorker(t, servers.url())
	calls.let(1 << 20)
	if code := caller.wait(slow); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, caller.said(), last.said())
	}
	sameOutput(t, dir, "here", "there")
	if doubled := model.Doubled(6) / 6; doubled > 8 {
		t.Errorf("%d calls were paid twice, and 8 were under way at most", doubled)
	}
	if strings.Contains(poor.said(), "joined") {
		t.Errorf("one without a key takes part\n%s", poor.said())
	}
	last.says("left run")
	for _, s := range servers.all {
		checkFiles(t, s.dir, key)
	}
}

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
		model := modelserver.Serve(t, modelserver.Options{Key: "sk-worker", Answer: (*valve)(nil).answer})
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
