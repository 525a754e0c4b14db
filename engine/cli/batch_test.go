package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// batchVotes asks one model about items in batches, and then another model about the same items one
// by one.
const batchVotes = `
variable "url" {}
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use       = "openai"
    n         = 2
    accept    = "answer in labels"
    resamples = 1
    price {
      input  = 1000
      output = 1000
    }
    config {
      base_url = var.url
      model    = "batched"
      api_key  = secret("BATCH_KEY", "")
      batch    = true
    }
  }
  sample "second" {
    use  = "openai"
    when = "len(votes) > 1"
    price {
      input  = 0
      output = 0
    }
    config {
      base_url = var.url
      model    = "alone"
      api_key  = secret("BATCH_KEY", "")
    }
  }
  elect "e" {
    use    = "majority"
    accept = "answer in labels"
  }
}
`

// batchContexts builds a knowledge whose passages get their context in batches.
const batchContexts = `
variable "url" {}
knowledge "k" {
  source { path = "docs" }
  chunk {
    use = "recursive"
    config {
      size    = 20
      overlap = 0
    }
  }
  enrich "context" {
    use = "context"
    price {
      input  = 1000
      output = 1000
    }
    config {
      base_url = var.url
      model    = "batched"
      api_key  = secret("BATCH_KEY", "")
      batch    = true
    }
  }
  embed {
    use = "openai"
    config {
      base_url = var.url
      model    = "alone"
      api_key  = secret("BATCH_KEY", "")
    }
  }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
}
`

const batchItems = 40

// batched is a folder with a pipeline, and its server, which may kill racflow.
type batched struct {
	dir    string
	server *modelserver.Server

	mu     sync.Mutex
	at     modelserver.BatchStep // the step at which racflow is killed; empty: never
	kill   func()
	killed bool
}

// collected is the step between reading the last reply and storing its result: the model that is
// asked one by one gets its first request.
const collected modelserver.BatchStep = "collected"

func newBatched(t *testing.T, pipeline string) *batched {
	t.Helper()
	b := &batched{}
	labels := []string{"fruit", "vehicle", "none that is known", "nor this"}
	b.server = modelserver.Serve(t, modelserver.Options{
		Key: "sk-batch-hush",
		Answer: func(a modelserver.Ask, choice int) string {
			if a.Model == "alone" {
				b.step(collected)
				return "fruit"
			}
			if at := strings.LastIndex(a.Text(), "number "); at >= 0 {
				return labels[(int(a.Text()[at+8])+choice)%len(labels)]
			}
			return "It stands somewhere in the document."
		},
		Vector: func(string) []float32 {
			b.step(collected)
			return []float32{1, 0}
		},
		Batches: modelserver.Batches{Polls: 1, On: b.step},
	})
	files := applesAndCars(batchItems)
	files["p.hcl"] = pipeline
	for i := range 5 {
		files[fmt.Sprintf("docs/%d.txt", i)] = strings.Repeat(fmt.Sprintf("Sentence of document %d about a thing. ", i), 12)
	}
	b.dir = folder(t, files)
	return b
}

// step kills racflow if this is the step to do so, and returns when racflow has ended.
func (b *batched) step(now modelserver.BatchStep) {
	b.mu.Lock()
	kill := b.kill
	if now != b.at || b.killed {
		kill = nil
	} else {
		b.killed = true
	}
	b.mu.Unlock()
	if kill != nil {
		kill()
	}
}

// run runs racflow until it ends or is killed.
func (b *batched) run(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	c := racflow(t, b.dir, append([]string{"run", "-var", "url=" + b.server.URL, "--output", "out.jsonl", "p.hcl"}, args...)...)
	c.Env = append(os.Environ(), "BATCH_KEY=sk-batch-hush")
	var out bytes.Buffer
	c.Stderr = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	b.mu.Lock()
	b.kill = func() {
		_ = c.Process.Kill()
		<-ended
	}
	b.mu.Unlock()
	err := c.Wait()
	close(ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String()
}

// asked returns how many choices each question got in a batch, and fails if a question was asked
// alone.
func (b *batched) asked(t *testing.T) map[string]int {
	t.Helper()
	given := map[string]int{}
	for _, a := range b.server.Asks() {
		switch {
		case a.Model == "alone":
		case a.Batch == "":
			t.Errorf("a question was asked alone: %s", a.Text())
		default:
			given[a.Whole()] += a.N
		}
	}
	return given
}

// TestKilledWithABatch kills racflow at two steps of a batch, in a run and during the build of a
// knowledge: the next process loses nothing and asks for nothing twice.
func TestKilledWithABatch(t *testing.T) {
	leaveTo(t, "command", "it is a run for each place; package pending shows them without a process")
	for name, pipeline := range map[string]string{"votes": batchVotes, "contexts": batchContexts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quiet := newBatched(t, pipeline)
			if code, stderr := quiet.run(t); code != 0 {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			want, batches, out := quiet.asked(t), quiet.server.Batches(), readFile(t, quiet.dir, "out.jsonl")
			if len(want) == 0 || batches == 0 {
				t.Fatalf("%d questions in %d batches", len(want), batches)
			}
			for _, at := range []modelserver.BatchStep{modelserver.BatchCreated, collected} {
				t.Run(string(at), func(t *testing.T) {
					b := newBatched(t, pipeline)
					b.at = at
					if code, stderr := b.run(t); code != -1 || !b.killed {
						t.Fatalf("exit code %d, killed: %t\n%s", code, b.killed, stderr)
					}
					var resume []string
					if name == "votes" {
						resume = []string{"--resume"}
					}
					if code, stderr := b.run(t, resume...); code != 0 {
						t.Fatalf("exit code %d\n%s", code, stderr)
					}
					if d := cmp.Diff(want, b.asked(t)); d != "" {
						t.Errorf("choices that were given (-want +got):\n%s", d)
					}
					if got := b.server.Batches(); got != batches {
						t.Errorf("%d batches, want %d", got, batches)
					}
					if got := readFile(t, b.dir, "out.jsonl"); got != out {
						t.Errorf("results %s\nwant %s", got, out)
					}
					if left, err := filepath.Glob(filepath.Join(b.dir, ".racflow", "pending", "*")); err != nil || len(left) > 0 {
						t.Errorf("%d handles are left, %v", len(left), err)
					}
					checkFiles(t, b.dir, "sk-batch-hush")
				})
			}
		})
	}
}

// llmCost returns the cost of its batches that a run reports.
func llmCost(t *testing.T, stderr string) float64 {
	t.Helper()
	m := regexp.MustCompile(`sample\.llm: \d+ calls.* cost ([0-9.]+)`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("no cost is reported:\n%s", stderr)
	}
	cost, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return cost
}

// If a budget has no room for a batch, none is sent. If it has room, the room stays reserved, also
// for the process that fetches the answers.
func TestBatchInABudget(t *testing.T) {
	b := newBatched(t, batchVotes)
	if code, stderr := b.run(t, "--max-cost", "5"); code == 0 || b.server.Batches() != 0 || !strings.Contains(stderr, "the budget of 5.00 is spent: ") {
		t.Errorf("exit code %d, %d batches\n%s", code, b.server.Batches(), stderr)
	}
	b = newBatched(t, batchVotes)
	b.at = modelserver.BatchPolled
	if code, stderr := b.run(t, "--max-cost", "50"); code != -1 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if code, stderr := b.run(t, "--resume", "--max-cost", "5"); code == 0 || !strings.Contains(stderr, "the next may take") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr := b.run(t, "--resume", "--max-cost", "50"); code != 0 || llmCost(t, stderr) > 50 || b.server.Batches() != 2 {
		t.Errorf("exit code %d, %d batches\n%s", code, b.server.Batches(), stderr)
	}
}
