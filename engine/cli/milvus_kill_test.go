package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answers reads what a run writes and checks that every item is there once and
// in order. It returns how many were answered.
type answers struct {
	t        *testing.T
	lines    int
	answered int
	reasons  map[string]bool // of those that were not
}

func (a *answers) take(line []byte) {
	var r struct {
		ID     string
		Answer *string
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(line, &r); err != nil {
		a.t.Errorf("line %q: %v", line, err)
	}
	if want := "r" + strconv.Itoa(a.lines); r.ID != want {
		a.t.Errorf("line %d is item %q", a.lines+1, r.ID)
	}
	a.lines++
	switch {
	case r.Answer != nil && r.Error == nil:
		a.answered++
	case r.Error != nil:
		a.reasons[r.Error.Message] = true
	default:
		a.t.Errorf("neither an answer nor an error: %s", line)
	}
}

// TestMilvusKilledInARun kills the server with -9 while items are answered. When
// it stays away the run is resumed later.
func TestMilvusKilledInARun(t *testing.T) {
	if testing.Short() {
		t.Skip("TestMilvusKilled of package live kills the server, too")
	}
	const items, before = 4000, 500
	for _, test := range []struct {
		name, retry string
		back        bool
		code        int
		within      time.Duration
	}{
		{"it comes back", "2m", true, 0, 3 * time.Minute},
		{"it stays away", "2s", false, 3, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := startEngine(t)
			dir := milvusFolder(t, 500, items)
			c := racflow(t, dir, "run", "-var", "retry="+test.retry, "--input", "items.tsv", "p.hcl")
			c.Env = e.env()
			var stderr bytes.Buffer
			c.Stderr = &stderr
			stdout, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			start(t, c)
			got := &answers{t: t, reasons: map[string]bool{}}
			lines := bufio.NewReader(stdout)
			var killed time.Time
			for {
				line, err := lines.ReadBytes('\n')
				if err == io.EOF && len(line) == 0 {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if got.take(line); got.lines == before {
					e.kill()
					killed = time.Now()
					if test.back {
						time.Sleep(2 * time.Second)
						e.start()
					}
				}
			}
			took := time.Since(killed)
			_ = c.Wait()
			if code := c.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if killed.IsZero() || got.lines != items || took > test.within {
				t.Errorf("%d of %d items, %v after the server was killed", got.lines, items, took)
			}
			t.Logf("%d answered, %v after the server was killed", got.answered, took)
			if test.back {
				if got.answered != items {
					t.Errorf("%d of %d items were answered: %v", got.answered, items, got.reasons)
				}
				return
			}
			if got.answered < before || got.answered > items*9/10 {
				t.Errorf("%d items were answered", got.answered)
			}
			for reason := range got.reasons {
				if !strings.Contains(reason, e.address()) || !strings.Contains(reason, "retry_time") {
					t.Errorf("an item failed because: %s", reason)
				}
			}
			if !strings.Contains(stderr.String(), e.address()) || !strings.Contains(stderr.String(), "retry_time") {
				t.Errorf("standard error holds no reason or no advice")
			}
			if t.Failed() {
				t.Logf("%s", stderr.Bytes())
			}
			e.start()
			c = racflow(t, dir, "run", "--resume", "-var", "retry="+test.retry, "--input", "items.tsv", "p.hcl")
			c.Env = e.env()
			out, err := c.Output()
			resumed := &answers{t: t, reasons: map[string]bool{}}
			for line := range bytes.Lines(out) {
				resumed.take(line)
			}
			if err != nil || resumed.answered != items {
				t.Errorf("resumed: %d of %d items are answered, %v: %v", resumed.answered, items, err, resumed.reasons)
			}
		})
	}
}

// milvusRun is a run of the pipeline in a folder, for one item.
func milvusRun(t *testing.T, e *milvusEngine, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, dir, append([]string{"run", "--limit", "1", "--input", "items.tsv"}, append(args, "p.hcl")...)...)
	c.Env = e.env()
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	return c, stderr
}

// TestMilvusKilledInABuild kills the server with -9 while knowledge is built
// beside a generation that is complete.
func TestMilvusKilledInABuild(t *testing.T) {
	const entries = 40_000
	for _, test := range []struct {
		name, retry string
		back        bool
	}{
		{"it comes back", "2m", true},
		{"it stays away", "2s", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := startEngine(t)
			dir := milvusFolder(t, 100, 10)
			if c, stderr := milvusRun(t, e, dir); c.Run() != nil {
				t.Fatalf("the first build: %s", stderr)
			}
			write(t, dir, "rows.tsv", rows(entries))
			c, stderr := milvusRun(t, e, dir, "-var", "retry="+test.retry, "-var", "analyzer=code")
			start(t, c)
			e.awaitBuild(dir)
			time.Sleep(1500 * time.Millisecond) // it takes several seconds
			e.kill()
			killed := time.Now()
			if test.back {
				time.Sleep(2 * time.Second)
				e.start()
			}
			err := c.Wait()
			took := time.Since(killed)
			t.Logf("%v after the server was killed: %v\n%s", took, err, stderr)
			if test.back {
				if err != nil || !strings.Contains(stderr.String(), "40000 entries") {
					t.Errorf("the build did not complete")
				}
			} else {
				if code := c.ProcessState.ExitCode(); code != 1 || took > 30*time.Second {
					t.Errorf("exit code %d after %v", code, took)
				}
				if said := stderr.String(); !strings.Contains(said, e.address()) || !strings.Contains(said, "retry_time") {
					t.Errorf("no reason or no advice")
				}
				e.start()
				write(t, dir, "rows.tsv", rows(100))
				c, stderr := milvusRun(t, e, dir)
				if out, err := c.Output(); err != nil || !strings.Contains(stderr.String(), "100 entries, up to date") || !strings.Contains(string(out), `"answer":"topic`) {
					t.Errorf("the generation from before: %v\n%s%s", err, out, stderr)
				}
				write(t, dir, "rows.tsv", rows(entries))
			}
			c, stderr = milvusRun(t, e, dir, "-var", "analyzer=code")
			if err := c.Run(); err != nil || !strings.Contains(stderr.String(), "40000 entries") {
				t.Errorf("the build afterwards: %v\n%s", err, stderr)
			}
			if test.back && !strings.Contains(stderr.String(), "up to date") {
				t.Errorf("it is built again: %s", stderr)
			}
		})
	}
}

// awaitBuild waits until a first build with the other analyzer is under way.
func (e *milvusEngine) awaitBuild(dir string) {
	e.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c := racflow(e.t, dir, "knowledge", "list", "--json", "-var", "analyzer=code", "p.hcl")
		c.Env = e.env()
		out, err := c.Output()
		if err == nil && strings.Contains(string(out), `"incomplete"`) {
			return
		}
		if time.Now().After(until) {
			e.t.Fatalf("no build is under way: %v\n%s", err, out)
		}
	}
}
