//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	q := quick{t.TempDir()}
	var text strings.Builder
	text.WriteString("id\ttext\n")
	for i := range items {
		fmt.Fprintf(&text, "q%d\tan apple or a car, number %d\n", i, i)
	}
	q.write(t, "p.hcl", quickPipeline)
	q.write(t, "rows.tsv", "text\tlabel\napple and pear\tfruit\nplum\tfruit\ncar and bus\tvehicle\n")
	q.write(t, "items.tsv", text.String())
	return q
}

func (q quick) path(name string) string { return filepath.Join(q.dir, name) }

func (q quick) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(q.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns a file's content; "" where there is none.
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
	c := racflow(t, q.dir, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
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

// TestKilledOutput kills runs that replace a file, while they write and around
// their end: the file is the old one or the new one.
func TestKilledOutput(t *testing.T) {
	const old = "{\"id\":\"of an older run\"}\n"
	q := newQuick(t, 2000)
	if code, _, stderr := q.run(t, "run", "--output", "out.jsonl", "p.hcl"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	want := q.read("out.jsonl")
	if strings.Count(want, "\n") != 2000 || q.size("out.jsonl.part") > 0 {
		t.Fatalf("%d results", strings.Count(want, "\n"))
	}
	kills := 20
	if testing.Short() {
		kills = 6
	}
	for i := range kills {
		q.write(t, "out.jsonl", old)
		_ = os.Remove(q.path("out.jsonl.part")) // of the kill before, if there is one
		if i%4 == 0 {
			// With more input to come, it is under way for certain.
			c, stdin, stderr := q.open(t, "--output", "out.jsonl")
			start(t, c)
			if _, err := io.WriteString(stdin, "text\n"+strings.Repeat("an apple\n", 200)); err != nil {
				t.Fatal(err)
			}
			await(t, "any result", func() bool { return q.size("out.jsonl.part") > 0 })
			_ = c.Process.Kill()
			_ = c.Wait()
			if got := q.read("out.jsonl"); got != old {
				t.Fatalf("killed while it writes, it leaves %d bytes\n%s", len(got), stderr)
			}
			continue
		}
		after, delay := int64(len(want)), time.Duration(rand.IntN(4000))*time.Microsecond
		if i%4 == 1 {
			after, delay = rand.Int64N(int64(len(want))), 0
		}
		c := racflow(t, q.dir, "run", "--output", "out.jsonl", "p.hcl")
		start(t, c)
		for begun := time.Now(); q.size("out.jsonl.part") < after && q.size("out.jsonl") == int64(len(old)); {
			if time.Since(begun) > patience {
				t.Fatal("it does not get there")
			}
		}
		time.Sleep(delay)
		_ = c.Process.Kill()
		_ = c.Wait()
		if got := q.read("out.jsonl"); got != old && got != want {
			t.Errorf("killed after %d of %d bytes and %v, it leaves %d bytes", after, len(want), delay, len(got))
		}
	}
	// No lock is left, and the newest of the killed runs, if one was, can be completed.
	q.write(t, "out.jsonl", old)
	if code, _, stderr := q.run(t, "run", "--resume", "--output", "out.jsonl", "p.hcl"); (code != 0 || q.read("out.jsonl") != want) && !strings.Contains(stderr, "left anything to do") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := q.run(t, "run", "--output", "out.jsonl", "--limit", "2", "p.hcl"); code != 0 || strings.Count(q.read("out.jsonl"), "\n") != 2 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestOneOutput starts several runs on one file at once: one of them wins, and the
// others end before they have done anything.
func TestOneOutput(t *testing.T) {
	for _, n := range []int{2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			q := newQuick(t, 1)
			ended := make(chan int)
			runs, inputs, errs := make([]*exec.Cmd, n), make([]io.WriteCloser, n), make([]*bytes.Buffer, n)
			for i := range n {
				runs[i], inputs[i], errs[i] = q.open(t, "--output", "out.jsonl", "--state", fmt.Sprint("state", i))
			}
			for _, c := range runs {
				start(t, c)
			}
			for i, c := range runs {
				go func() {
					_ = c.Wait() // its exit code is compared
					ended <- i
				}()
			}
			next := func() int {
				select {
				case i := <-ended:
					return i
				case <-time.After(patience):
					t.Fatal("too many runs write one file")
					return -1
				}
			}
			lost := map[int]bool{}
			for range n - 1 {
				i := next()
				lost[i] = true
				code, stderr := runs[i].ProcessState.ExitCode(), errs[i].String()
				if code != exitFailed || !strings.Contains(stderr, "another process is writing out.jsonl: wait") || strings.Contains(stderr, "knowledge") {
					t.Errorf("exit code %d\n%s", code, stderr)
				}
				if found, _ := filepath.Glob(q.path(fmt.Sprintf("state%d/*", i))); len(found) > 0 {
					t.Errorf("a run that is refused leaves %q", found)
				}
			}
			for i, stdin := range inputs {
				if lost[i] {
					continue
				}
				_, err := io.WriteString(stdin, "text\none apple\ntwo apples\n")
				if closed := stdin.Close(); err != nil || closed != nil {
					t.Error(err, closed)
				}
			}
			if i := next(); lost[i] || runs[i].ProcessState.ExitCode() != 0 {
				t.Errorf("exit code %d\n%s", runs[i].ProcessState.ExitCode(), errs[i])
			}
			if n := strings.Count(q.read("out.jsonl"), "\n"); n != 2 {
				t.Errorf("%d results", n)
			}
		})
	}
}

// TestStreams writes to what no file can be put in place of: results come while the
// input is still open.
func TestStreams(t *testing.T) {
	q := newQuick(t, 3)
	if err := syscall.Mkfifo(q.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"-", "/dev/stdout", "/dev/fd/1", "fifo"} {
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
	if code, stdout, stderr := q.run(t, "run", "--output", os.DevNull, "p.hcl"); code != 0 || stdout != "" {
		t.Errorf("exit code %d, %q\n%s", code, stdout, stderr)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("%s has become %v", os.DevNull, info.Mode())
	}

	// What a shell appends to is appended to, under each name.
	for _, to := range []string{"-", "/dev/stdout", "log"} {
		q.write(t, "log", "before\n")
		log, err := os.OpenFile(q.path("log"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := racflow(t, q.dir, "run", "--output", to, "p.hcl")
		c.Stdout = log
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		_ = log.Close()
		if got := q.read("log"); !strings.HasPrefix(got, "before\n") || strings.Count(got, "\n") != 4 {
			t.Errorf("%s: the log is %q", to, got)
		}
	}
	for _, name := range []string{"-", "-.part", "fifo.part", "log.part", "/dev/stdout.part", os.DevNull + ".part"} {
		if !filepath.IsAbs(name) {
			name = q.path(name)
		}
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}
