//go:build linux

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// library is a folder of documents with a pipeline file that searches it.
type library struct{ dir string }

func newLibrary(t *testing.T, documents, size int) library {
	t.Helper()
	l := library{t.TempDir()}
	random := rand.New(rand.NewPCG(7, uint64(documents)))
	for i := range documents {
		var text strings.Builder
		fmt.Fprintf(&text, "# Document %d\n", i)
		for text.Len() < size {
			fmt.Fprintf(&text, "\n## Section %d\n\n", text.Len())
			for range 150 {
				fmt.Fprintf(&text, "w%04x ", random.IntN(20_000))
			}
			text.WriteString("\n")
		}
		write(t, l.dir, filepath.Join("docs", strconv.Itoa(i%100), fmt.Sprintf("%d.md", i)), text.String())
	}
	write(t, l.dir, "items.tsv", "text\nw0007 w0008\n")
	write(t, l.dir, "p.hcl", `
knowledge "k" {
  source { path = "docs" }
  chunk { use = "markdown" }
  embed {
    use = "hashing"
    config { dimension = 384 }
  }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
}
`)
	return l
}

// run runs the pipeline. It returns the report and the peak memory of its processes together.
func (l library) run(t *testing.T) (reported string, most memory) {
	t.Helper()
	code, _, reported, most := measure(t, racflow(t, l.dir, "run", "p.hcl"))
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, reported)
	}
	return reported, most
}

// measure runs a command to its end, and meanwhile measures the memory of its processes.
func measure(t *testing.T, c *exec.Cmd) (code int, stdout, stderr string, most memory) {
	t.Helper()
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	start(t, c)
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // its exit code is returned
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return c.ProcessState.ExitCode(), out.String(), errs.String(), most
		case <-time.After(20 * time.Millisecond):
			now := memoryOf(c.Process.Pid)
			most.resident, most.own = max(most.resident, now.resident), max(most.own, now.own)
		}
	}
}

// memory is the memory of processes in bytes: all resident memory, and the part of it that is not a
// file's. The system may drop file pages at any time.
type memory struct{ resident, own int }

func (m memory) String() string {
	return fmt.Sprintf("%d MB (%d without files)", m.resident>>20, m.own>>20)
}

// memoryOf returns the memory of a process and its children.
func memoryOf(pid int) memory {
	var total memory
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		for field, to := range map[string]*int{"VmRSS": &total.resident, "RssAnon": &total.own} {
			if m := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(status); m != nil {
				kb, _ := strconv.Atoi(string(m[1]))
				*to = kb << 10
			}
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				of := memoryOf(id)
				total.resident, total.own = total.resident+of.resident, total.own+of.own
			}
		}
	}
	return total
}

var reportedOf = regexp.MustCompile(`(\d+) documents, (\d+) entries, (?:up to date|(\d+) embedded)`)

// counts reads a run's report about its knowledge.
func counts(t *testing.T, reported string) (documents, entries, embedded int) {
	t.Helper()
	m := reportedOf.FindStringSubmatch(reported)
	if m == nil {
		t.Fatalf("the run does not tell about its knowledge:\n%s", reported)
	}
	for i, n := range []*int{&documents, &entries, &embedded} {
		*n, _ = strconv.Atoi(m[i+1])
	}
	return documents, entries, embedded
}

const mostHeld = 1 << 30 // bytes of memory of all processes together

// TestManyDocuments indexes 10,000 documents of 10 KB. It measures memory and rate, so it runs only
// on request: RACFLOW_TEST_DOCUMENTS=1 go test -timeout 20m -run TestManyDocuments -v ./engine/cli
func TestManyDocuments(t *testing.T) {
	if os.Getenv("RACFLOW_TEST_DOCUMENTS") == "" {
		t.Skip("RACFLOW_TEST_DOCUMENTS is not set")
	}
	half := newLibrary(t, 5000, 10_000)
	begun := time.Now()
	half.run(t)
	first := time.Since(begun)

	l := newLibrary(t, 10_000, 10_000)
	begun = time.Now()
	reported, held := l.run(t)
	took := time.Since(begun)
	documents, entries, _ := counts(t, reported)
	t.Logf("%d documents, %d entries: %.1f s, %.0f documents a second, %v held; half of them %.1f s",
		documents, entries, took.Seconds(), float64(documents)/took.Seconds(), held, first.Seconds())
	if documents != 10_000 || held.resident > mostHeld {
		t.Errorf("%d documents, %v", documents, held)
	}
	if took > 3*first {
		t.Errorf("twice the documents took %.1f times as long", took.Seconds()/first.Seconds())
	}
	begun = time.Now()
	reported, again := l.run(t)
	t.Logf("again: %.1f s, %v held", time.Since(begun).Seconds(), again)
	if !strings.Contains(reported, "up to date") || again.resident > mostHeld {
		t.Errorf("again: %v, %s", again, reported)
	}
	write(t, l.dir, filepath.Join("docs", "0", "0.md"), "# Another\n\nw0007\n")
	reported, _ = l.run(t)
	if _, _, embedded := counts(t, reported); embedded != 1 {
		t.Errorf("a changed document: %d entries were embedded", embedded)
	}
}
