//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const quickPipeline = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = 64 }
  }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "knn" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`

// quick is a folder with a pipeline that answers fast.
type quick struct{ dir string }

func newQuick(t *testing.T, items int) quick {
	t.Helper()
	return quick{folder(t, map[string]string{
		"p.hcl": quickPipeline, "rows.tsv": "text\tlabel\napple and pear\tfruit\nplum\tfruit\ncar and bus\tvehicle\n",
		"items.tsv": "id\ttext\n" + numbered(items, "q%[1]d\tan apple or a car, number %[1]d\n"),
	})}
}

func (q quick) path(name string) string { return filepath.Join(q.dir, name) }

// read returns a file's content; "" if there is no file.
func (q quick) read(name string) string {
	content, _ := os.ReadFile(q.path(name))
	return string(content)
}

func (q quick) size(name string) int64 {
	info, err := os.Stat(q.path(name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// run runs to the end of the process.
func (q quick) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return ran(t, racflow(t, q.dir, args...))
}

// open starts a run over standard input, which stays open.
func (q quick) open(t *testing.T, args ...string) (*exec.Cmd, io.WriteCloser, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, q.dir, append([]string{"run", "--input", "-", "p.hcl"}, args...)...)
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return c, stdin, stderr
}

func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("long after: not yet %s", what)
		}
	}
}

// TestKilledOutput kills runs that replace a file, at random moments of their last part. The file is
// the complete old or the complete new one, and the killed run can be resumed to exactly the same
// file. RACFLOW_TEST_KILLS sets the number of kills, for all formats together.
func TestKilledOutput(t *testing.T) {
	leaveTo(t, "kills", "packages columnar and run show what is left where a run ends early")
	kills := 12
	if testing.Short() {
		kills = 3
	}
	kills = envNumber(t, "RACFLOW_TEST_KILLS", kills)
	q := newQuick(t, 2000)
	for i, name := range []string{"out.jsonl", "out.csv", "out.parquet"} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			k := newKilled(t, q, name)
			for range (kills + 2) / 3 {
				k.kill(t, random.Float64(), time.Duration(random.IntN(6000))*time.Microsecond)
			}
			t.Logf("%d files were the old one, %d the new one; %d runs were resumed", k.wasOld, k.wasNew, k.resumed)
		})
	}
}

// killed is a file that killed runs replace.
type killed struct {
	quick
	name      string
	old, want string // content of the file before and after a run
	journal   int64  // bytes of a complete run's journal
	wasOld, wasNew,
	resumed int
}

func newKilled(t *testing.T, q quick, name string) *killed {
	t.Helper()
	k := &killed{quick: q, name: name}
	for _, args := range [][]string{{"--limit", "1"}, nil} {
		if code, _, stderr := q.run(t, append([]string{"run", "--output", name, "p.hcl"}, args...)...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		k.old, k.want = k.want, q.read(name)
	}
	k.journal = k.size(k.newest())
	if k.old == k.want || k.journal == 0 {
		t.Fatalf("a file of %d bytes, a journal of %d", len(k.want), k.journal)
	}
	return k
}

// newest returns the path of the newest run's journal; empty: there is none.
func (k *killed) newest() string {
	names, _ := filepath.Glob(k.path(filepath.Join(stateDir, "runs", "*", "journal.jsonl")))
	if len(names) == 0 {
		return ""
	}
	name, _ := filepath.Rel(k.dir, slices.Max(names)) // the names of runs rise
	return name
}

// kill kills a run some time after its journal has reached a share, from 0 to 1, and then resumes the
// run.
func (k *killed) kill(t *testing.T, far float64, after time.Duration) {
	t.Helper()
	write(t, k.dir, k.name, k.old)
	before := k.newest()
	c := racflow(t, k.dir, "run", "--output", k.name, "p.hcl")
	start(t, c)
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // it is killed, unless it was faster
		close(ended)
	}()
	enough := k.journal/2 + int64(far*float64(k.journal/2))
	await(t, "so far", func() bool {
		newest := k.newest()
		return newest != before && k.size(newest) >= enough
	})
	select {
	case <-time.After(after):
	case <-ended:
	}
	_ = c.Process.Kill()
	<-ended
	got := k.read(k.name)
	switch got {
	case k.old:
		k.wasOld++
	case k.want:
		k.wasNew++
	default:
		t.Fatalf("killed at %.3f and %v later, it leaves %d bytes of %d", far, after, len(got), len(k.want))
	}
	if k.size(k.name+".part") > 0 {
		code, _, stderr := k.run(t, "run", "--output", k.name, "p.hcl")
		if code != exitFailed || !strings.Contains(stderr, "which ended early: --resume=") || strings.Contains(stderr, "knowledge") {
			t.Errorf("what it left is replaced: exit code %d\n%s", code, stderr)
		}
	}
	code, _, stderr := k.run(t, "run", "--resume", "--output", k.name, "p.hcl")
	if code == 0 {
		k.resumed++
	} else if got == k.old || !strings.Contains(stderr, "left anything to do") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if got := k.read(k.name); got != k.want || k.size(k.name+".part") > 0 {
		t.Fatalf("resumed, it leaves %d bytes of %d\n%s", len(got), len(k.want), stderr)
	}
}

// TestKilledStream kills a run over standard input, which has no journal: its partial output is the
// only copy of its results.
func TestKilledStream(t *testing.T) {
	const old = "{\"id\":\"of an older run\"}\n"
	q := newQuick(t, 2)
	write(t, q.dir, "out.jsonl", old)
	c, stdin, stderr := q.open(t, "--output", "out.jsonl")
	start(t, c)
	// With more input to come, the run is still in progress.
	if _, err := io.WriteString(stdin, "text\n"+strings.Repeat("an apple\n", 200)); err != nil {
		t.Fatal(err)
	}
	await(t, "any result", func() bool { return q.size("out.jsonl.part") > 0 })
	_ = c.Process.Kill()
	_ = c.Wait()
	left := q.read("out.jsonl.part")
	if got := q.read("out.jsonl"); got != old {
		t.Fatalf("killed while it writes, it leaves %d bytes\n%s", len(got), stderr)
	}
	code, _, errs := q.run(t, "run", "--output", "out.jsonl", "p.hcl")
	if code != exitFailed || !strings.Contains(errs, "out.jsonl.part holds results of a run that ended early and is not kept") || q.read("out.jsonl.part") != left {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if code, _, errs := q.run(t, "run", "--overwrite", "--output", "out.jsonl", "p.hcl"); code != 0 || strings.Count(q.read("out.jsonl"), "\n") != 2 || q.size("out.jsonl.part") > 0 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// TestOneOutput starts a run on a file that another run writes: it ends before it has done anything.
func TestOneOutput(t *testing.T) {
	q := newQuick(t, 1)
	c, stdin, stderr := q.open(t, "--output", "out.jsonl")
	start(t, c)
	if _, err := io.WriteString(stdin, "text\n"+strings.Repeat("an apple\n", 200)); err != nil {
		t.Fatal(err)
	}
	await(t, "any result", func() bool { return q.size("out.jsonl.part") > 0 })
	code, _, said := q.run(t, "run", "--output", "out.jsonl", "--state", "other", "p.hcl")
	if code != exitFailed || !strings.Contains(said, "another process is writing out.jsonl: wait") || strings.Contains(said, "knowledge") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if found, _ := filepath.Glob(q.path("other/*")); len(found) > 0 {
		t.Errorf("a run that is refused leaves %q", found)
	}
	if err := errors.Join(stdin.Close(), c.Wait()); err != nil || strings.Count(q.read("out.jsonl"), "\n") != 200 {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// TestStreams writes to outputs that no file can replace: results come while the input is still open.
func TestStreams(t *testing.T) {
	q := newQuick(t, 3)
	if err := syscall.Mkfifo(q.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"-", "fifo"} {
		t.Run(to, func(t *testing.T) {
			c, stdin, stderr := q.open(t, "--output", to)
			results, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			start(t, c)
			if to == "fifo" {
				if results, err = os.Open(q.path("fifo")); err != nil {
					t.Fatal(err)
				}
				defer results.Close()
			}
			if _, err := io.WriteString(stdin, "text\nan apple\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(results).ReadString('\n'); err != nil || !strings.Contains(line, `"answer":"fruit"`) {
				t.Errorf("the first line is %q, %v", line, err)
			}
			_ = stdin.Close()
			if err := c.Wait(); err != nil {
				t.Errorf("%v\n%s", err, stderr)
			}
		})
	}
	for _, name := range []string{"-", "-.part", "fifo.part"} {
		if _, err := os.Lstat(q.path(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

// envNumber returns the number in an environment variable, or otherwise if there is none.
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
