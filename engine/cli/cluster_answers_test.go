//go:build linux

package cli

import (
	"io"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestClusterAnswers holds that an answer is paid for once, whoever asked for it: workers take what earlier runs of the
// caller paid for, and what they pay for is the caller's afterwards. The model says something else when it is asked again, so that an
// output shows whose answers it has.
func TestClusterAnswers(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	t.Setenv("CLUSTER_KEY", "sk-cluster-hush") // workers lack it otherwise
	const items = 120
	servers, dir, model := startServers(t, 1), clusterFolder(t, items), fickleModel(t)
	run := func(output, urls string, calls int, args ...string) {
		t.Helper()
		before := model.Calls()
		c := clusterRun(t, dir, output, urls, append([]string{"--state", "state", "-var", "url=" + model.URL}, args...)...)
		said := ends(t, c, slow)
		if made := model.Calls() - before; made != calls {
			t.Errorf("%s: %d calls of the model, want %d\n%s", output, made, calls, said)
		}
	}
	work := func() (stop func()) {
		a, b := startWorker(t, servers.url()), startWorker(t, servers.url())
		return func() {
			a.kill()
			b.kill()
		}
	}
	stop := work()
	run("paid", servers.url(), items)
	run("there", servers.url(), 0)
	stop()
	run("here", "", 0)
	stop = work() // which have answered nothing yet
	run("others", servers.url(), 0)
	for _, name := range []string{"there", "here", "others"} {
		sameOutput(t, dir, "paid", name)
	}
	run("refreshed", servers.url(), items, "--refresh")
	stop()
	run("later", "", 0)
	sameOutput(t, dir, "refreshed", "later")
	if text, other := readFile(t, dir, "paid.jsonl"), readFile(t, dir, "refreshed.jsonl"); text == other {
		t.Error("what was asked again has the answers of before")
	}
}

// fickleModel is a model that says something else when it is asked again about an item.
func fickleModel(t *testing.T) *modelserver.Server {
	t.Helper()
	var mu sync.Mutex
	times := map[string]int{} // that a text was asked about
	return modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, choice int) string {
		mu.Lock()
		defer mu.Unlock()
		if choice == 0 {
			times[a.Text()]++
		}
		return []string{"order_status", "refund_status"}[times[a.Text()]%2]
	}})
}

// TestClusterSeen looks at the metrics of processes of a run whose workers wait for a model.
func TestClusterSeen(t *testing.T) {
	leaveTo(t, "cluster", "packages caller and worker show it in one process")
	t.Setenv("CLUSTER_KEY", "sk-cluster-hush") // workers lack it otherwise
	servers, dir := startServers(t, 1), clusterFolder(t, 600)
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	model := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, choice int) string {
		<-answer
		return labelOf(a, choice)
	}})
	worker := startWorker(t, servers.url(), "--metrics", "127.0.0.1:0")
	startWorker(t, servers.url())
	asking := begin(t, clusterRun(t, dir, "seen", servers.url(), "--metrics", "127.0.0.1:0", "-var", "url="+model.URL))

	has := func(p *process, want string) {
		t.Helper()
		p.says("metrics: http://")
		at := regexp.MustCompile(`metrics: (http://\S+)`).FindStringSubmatch(p.said())[1]
		page := ""
		for start := time.Now(); !regexp.MustCompile(want).MatchString(page); time.Sleep(100 * time.Millisecond) {
			reply, err := http.Get(at)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(reply.Body)
			if _ = reply.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if page = string(text); time.Since(start) > slow {
				t.Fatalf("no %s in\n%s", want, page)
			}
		}
	}
	has(asking, `racflow_workers\{pipeline="p",state="working"\} 2\n`)
	has(asking, `racflow_batches\{pipeline="p",state="under_way"\} [1-9]`)
	has(worker, `racflow_requests\{pipeline="p",stage="sample.llm",state="(sent|waiting)",worker="[^"]+"\} [1-9]`)
	release()
	asking.good(slow)
	has(worker, `racflow_items_total\{outcome="answered",pipeline="p",worker="[^"]+"\} [1-9]`)
}
