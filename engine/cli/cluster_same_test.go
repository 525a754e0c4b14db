//go:build linux

package cli

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// clusterFile is a pipeline whose voters are free, but for one that asks a model about doubtful items.
const clusterFile = `
variable "url" { default = "" }
variable "below" { default = 2 }
variable "resamples" { default = 0 }
variable "concurrency" { default = 8 }
variable "tokens" { default = 1000000000 }
limit "llm" {
  concurrency       = var.concurrency
  tokens_per_minute = var.tokens
}
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 30
  }
  sample "knn" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  prompt "shots" {
    use     = "completion"
    enabled = var.url != ""
    config { redraw = "item" }
  }
  sample "llm" {
    use       = "openai"
    enabled   = var.url != ""
    when      = "margin < var.below"
    n         = 2
    resamples = var.resamples
    limit     = limit.llm
    accept    = "answer in labels"
    price {
      input  = 1
      output = 1
    }
    config {
      base_url = var.url
      model    = "test"
      api_key  = secret("CLUSTER_KEY", "")
    }
  }
  elect "e" {
    use  = "soft"
    flag = "confidence < 0.5"
  }
}
`

// clusterFolder is a folder with the pipeline, its examples and so many items.
func clusterFolder(t *testing.T, n int) string {
	t.Helper()
	texts := strings.Split(strings.TrimSpace(readFile(t, "../../examples/intent", "test.tsv")), "\n")[1:]
	var items strings.Builder
	items.WriteString("id\ttext\n")
	for i := range n {
		text := strings.Split(texts[i%len(texts)], "\t")[1]
		fmt.Fprintf(&items, "q%06d\t%s (number %06d)\n", i, text, i)
	}
	return folder(t, map[string]string{
		"p.hcl": clusterFile, "rows.tsv": readFile(t, "../../examples/intent", "train.tsv"), "items.tsv": items.String(),
	})
}

// labelOf is what the model says about a request: one of two labels, or none that is known, as the
// number of the item decides.
func labelOf(a modelserver.Ask, choice int) string {
	h := fnv.New32a()
	text := a.Text()
	_, _ = h.Write([]byte(text[max(0, strings.LastIndex(text, "(number ")):]))
	return []string{"order_status", "refund_status", "nothing that is known", "nothing that is known"}[(int(h.Sum32())+choice)%4]
}

// clusterRun is a run of the pipeline in a folder; where urls is empty, on this machine. Its output is NAME.jsonl.
func clusterRun(t *testing.T, dir, name, urls string, args ...string) *exec.Cmd {
	t.Helper()
	all := []string{"run", "--state", name + ".state", "--output", name + ".jsonl"}
	if urls != "" {
		all = append(all, "--on", urls)
	}
	c := racflow(t, dir, append(append(all, args...), "p.hcl")...)
	c.Env = append(os.Environ(), "CLUSTER_KEY=sk-cluster-hush", "RACFLOW_DUMPABLE=1")
	return c
}

// ends runs a command to its end, which has to be a good one, and returns what it said.
func ends(t *testing.T, c *exec.Cmd, within time.Duration) string {
	t.Helper()
	return begin(t, c).good(within)
}

// sameOutput compares the outputs of two runs in a folder byte by byte.
func sameOutput(t *testing.T, dir, want, got string) {
	t.Helper()
	a, b := readFile(t, dir, want+".jsonl"), readFile(t, dir, got+".jsonl")
	if a == b {
		return
	}
	ours, theirs := strings.Split(a, "\n"), strings.Split(b, "\n")
	differ, first := 0, ""
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			if differ++; first == "" {
				first = ours[i] + "\n" + theirs[i]
			}
		}
	}
	t.Errorf("%s has %d lines, %s has %d, and %d of them differ, such as\n%s", want, len(ours)-1, got, len(theirs)-1, differ, first)
}

// TestClusterSame takes the same items through a pipeline here and on workers: the output is the same to the byte.
// RACFLOW_TEST_CLUSTER_ITEMS says how many.
func TestClusterSame(t *testing.T) {
	items, workers := envNumber(t, "RACFLOW_TEST_CLUSTER_ITEMS", 1000), []int{1, 2, 4}
	if testing.Short() {
		items, workers = 250, []int{2}
	}
	servers := startServers(t, 1)
	dir := clusterFolder(t, items)
	tests := []struct {
		name string
		paid bool
		args []string
	}{
		{"knn", false, nil},
		{"cascade", true, []string{"-var", "below=0.1", "-var", "concurrency=32"}},
		{"resamples", true, []string{"-var", "below=0.05", "-var", "resamples=2", "-var", "concurrency=32"}},
		{"calibrated", true, []string{"-set", "elect.e.calibrate=30", "-var", "concurrency=32"}},
		{"calls", true, []string{"--calls", "100", "-var", "concurrency=32"}},
		{"limit", false, []string{"--limit", fmt.Sprint(items/2 + 7)}},
	}
	if leftTo("cluster") {
		tests = tests[1:2]
	}
	calls := map[string]int{}
	for _, test := range tests { // what is to come out
		model, args := modelserver.Serve(t, modelserver.Options{Answer: labelOf}), test.args
		if test.paid {
			args = append(args, "-var", "url="+model.URL)
		}
		ends(t, clusterRun(t, dir, test.name, "", args...), slow)
		if calls[test.name] = model.Calls(); test.paid != (model.Calls() > 0) {
			t.Fatalf("%s: %d calls of the model", test.name, model.Calls())
		}
	}
	running := 0
	for _, n := range workers {
		for ; running < n; running++ {
			startWorker(t, servers.url())
		}
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s on %d", test.name, n), func(t *testing.T) {
				model, args := modelserver.Serve(t, modelserver.Options{Answer: labelOf}), test.args
				if test.paid {
					args = append(args, "-var", "url="+model.URL)
				}
				name := fmt.Sprintf("%s-%d", test.name, n)
				ends(t, clusterRun(t, dir, name, servers.url(), args...), slow)
				sameOutput(t, dir, test.name, name)
				if model.Calls() != calls[test.name] {
					t.Errorf("%d calls, and %d by a run here", model.Calls(), calls[test.name])
				}
			})
		}
	}
}
