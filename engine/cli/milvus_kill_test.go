package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

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
	const entries = 25_000
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
				if err != nil || !strings.Contains(stderr.String(), "25000 entries") {
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
			if err := c.Run(); err != nil || !strings.Contains(stderr.String(), "25000 entries") {
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
