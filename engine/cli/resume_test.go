//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// paidPipeline asks a model about every item, with at most 8 calls at a time.
const paidPipeline = `
variable "url" {}
limit "llm" { concurrency = 8 }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  prompt "shots" { use = "completion" }
  sample "llm" {
    use   = "openai"
    n     = 2
    limit = limit.llm
    price {
      input  = 1
      output = 1
    }
    config {
      base_url = var.url
      model    = "test"
      api_key  = secret("RESUME_KEY", "")
    }
  }
  elect "e" {
    use    = "majority"
    accept = "answer in labels"
  }
}
`

const paidItems = 120

// paid is a folder with the pipeline, and its server.
type paid struct {
	dir    string
	server *modelserver.Server
	answer func(modelserver.Ask, int) string // of the server
	hold   atomic.Bool                       // holds back the second half of the answers
	free   chan struct{}                     // closed to release them
}

func newPaid(t *testing.T) *paid {
	t.Helper()
	return newPaidItems(t, paidItems)
}

func newPaidItems(t *testing.T, n int) *paid {
	t.Helper()
	p := &paid{free: make(chan struct{})}
	labels := []string{"fruit", "vehicle", "none that is known"}
	p.answer = func(a modelserver.Ask, choice int) string {
		if p.hold.Load() && a.Number >= paidItems/2 {
			<-p.free
		}
		at := strings.LastIndex(a.Text(), "number ")
		return labels[(int(a.Text()[at+8])+choice)%len(labels)]
	}
	p.server = modelserver.Serve(t, modelserver.Options{Latency: 40 * time.Millisecond, Answer: p.answer})
	p.dir = folder(t, applesAndCars(n))
	write(t, p.dir, "p.hcl", paidPipeline)
	return p
}

// applesAndCars returns files with labelled rows, and with a number of items that may be either.
func applesAndCars(items int) map[string]string {
	return map[string]string{
		"rows.tsv":  "text\tlabel\n" + numbered(20, "apple and pear %[1]d\tfruit\ncar and bus %[1]d\tvehicle\n"),
		"items.tsv": "id\ttext\n" + numbered(items, "q%[1]d\tan apple or a car, number %03[1]d\n"),
	}
}

func (p *paid) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := racflow(t, p.dir, append([]string{"run", "-var", "url=" + p.server.URL, "--output", "out.jsonl", "p.hcl"}, args...)...)
	c.Env = append(os.Environ(), "RESUME_KEY=sk-resume-hush")
	return c
}

// run runs to the end of the process.
func (p *paid) run(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	code, _, stderr = ran(t, p.command(t, args...))
	return code, stderr
}

func (p *paid) output(t *testing.T) string {
	t.Helper()
	return p.file(t, "out.jsonl")
}

func (p *paid) file(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, p.dir, name)
}

// change rewrites the pipeline's file with replacements.
func (p *paid) change(t *testing.T, replacements ...string) {
	t.Helper()
	write(t, p.dir, "p.hcl", strings.NewReplacer(replacements...).Replace(p.file(t, "p.hcl")))
}

// runID returns the name of the only run.
func (p *paid) runID(t *testing.T) string {
	t.Helper()
	kept := journal.RunsOf(filepath.Join(p.dir, stateDir)).List()
	if len(kept) != 1 {
		t.Fatalf("runs %v", kept)
	}
	return kept[0].ID
}

// TestResume ends a run early in each possible way and resumes it. Only calls that were in progress
// may be repeated, and the output is that of an undisturbed run.
func TestResume(t *testing.T) {
	undisturbed := newPaid(t)
	good(t, undisturbed.command(t))
	want := undisturbed.output(t)
	if n := strings.Count(want, "\n"); n != paidItems || undisturbed.server.Calls() != paidItems {
		t.Fatalf("%d results, %d calls", n, undisturbed.server.Calls())
	}
	halfway := func(end func(*os.Process) error) func(*testing.T, *paid) (int, string) {
		return func(t *testing.T, p *paid) (int, string) {
			c := p.command(t)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			p.hold.Store(true)
			release := sync.OnceFunc(func() { close(p.free) })
			defer release()
			start(t, c)
			await(t, "at half of the calls", func() bool { return p.server.Calls() >= paidItems/2+8 })
			if err := end(c.Process); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(patience, release).Stop()
			_ = c.Wait() // its exit code is compared
			return c.ProcessState.ExitCode(), stderr.String()
		}
	}
	tests := map[string]struct {
		end      func(*testing.T, *paid) (code int, stderr string)
		code     int
		underway int // calls that may be paid twice
		reported bool
		resume   []string
	}{
		"kill -9":   {halfway((*os.Process).Kill), -1, 8, false, []string{"--resume"}},
		"interrupt": {halfway(func(p *os.Process) error { return p.Signal(os.Interrupt) }), 130, 8, true, []string{"--resume"}},
		"terminate": {halfway(func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }), 130, 8, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPaid(t)
			const old = "{\"id\":\"of an older run\"}\n"
			if err := os.WriteFile(filepath.Join(p.dir, "out.jsonl"), []byte(old), 0o640); err != nil {
				t.Fatal(err)
			}
			code, stderr := test.end(t, p)
			if got := p.output(t); got != old {
				t.Errorf("a run that ended early has changed the output:\n%s", got)
			}
			asked := p.server.Calls()
			if code != test.code || asked == 0 || asked == paidItems {
				t.Fatalf("exit code %d after %d calls\n%s", code, asked, stderr)
			}
			id := p.runID(t)
			if reported := strings.Contains(stderr, "--resume="+id+" resumes it and completes out.jsonl\n"); reported != test.reported {
				t.Errorf("how to resume is not reported:\n%s", stderr)
			}
			_, err := os.Stat(filepath.Join(p.dir, "out.jsonl.part")) // missing if nothing was written yet
			if reported := strings.Contains(stderr, "results so far are in out.jsonl.part, and out.jsonl is unchanged\n"); reported != (test.reported && err == nil) {
				t.Errorf("where the results are is not reported:\n%s", stderr)
			}
			_, said, _ := strings.Cut("\n"+stderr, fmt.Sprintf("\n%d items in ", journal.RunsOf(filepath.Join(p.dir, stateDir)).Info(id).Answered))
			if test.reported && said == "" {
				t.Errorf("another number of items than resuming finds:\n%s", stderr)
			}
			if strings.Contains(stderr, "results in out.jsonl") {
				t.Errorf("a run that ended early names its output:\n%s", stderr)
			}
			if test.resume == nil {
				test.resume = []string{"--resume", id} // two arguments
			}
			code, stderr = p.run(t, test.resume...)
			if code != 0 || !strings.Contains(stderr, "resuming run "+id) {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			if got := p.output(t); got != want {
				t.Errorf("another output:\n%s\nwant\n%s", got, want)
			}
			if info, err := os.Stat(filepath.Join(p.dir, "out.jsonl")); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the output is %v, %v", info.Mode(), err)
			}
			if _, err := os.Stat(filepath.Join(p.dir, "out.jsonl.part")); err == nil {
				t.Error("a partial file is left")
			}
			if again := p.server.Calls() - paidItems; again > test.underway || p.server.Doubled(2) > 2*test.underway {
				t.Errorf("%d calls more than items, %d answers paid twice", again, p.server.Doubled(2))
			}
			calls := p.server.Calls()
			if code, stderr := p.run(t, "--resume"); code != 1 || !strings.Contains(stderr, "left anything to do") {
				t.Errorf("exit code %d for a run that is done\n%s", code, stderr)
			}
			if p.server.Calls() != calls {
				t.Error("a run that is done called")
			}
			checkFiles(t, filepath.Join(p.dir, stateDir), "sk-resume-hush")
		})
	}
}
