//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestStagesAreProcesses runs a pipeline whose input stays open, looks for the processes of its
// stages, and ends the run in each possible way.
func TestStagesAreProcesses(t *testing.T) {
	tests := []struct {
		name string
		end  func(*exec.Cmd, io.Closer) error
		code int
	}{
		{"end of input", func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() }, 0},
		{"interrupt", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(os.Interrupt) }, 130},
		{"terminate", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGTERM) }, 130},
		{"kill -9", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Kill() }, -1},
	}
	state := t.TempDir() // shared, so that stages learn once
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run, stdin, stderr := startRun(t, state)
			children := childrenOf(run.Process.Pid)
			if len(children) != 6 {
				t.Errorf("%d stage processes, want 6: %v", len(children), children)
			}
			for _, child := range children {
				args, env := readProc(child, "cmdline"), readProc(child, "environ")
				if !strings.Contains(args, "plugin\x00") || !strings.Contains(args, ".") {
					t.Errorf("process %d does not show its stage: %q", child, args)
				}
				if strings.Contains(args+env, "hush") {
					t.Errorf("process %d shows the secret of the environment: %q", child, args)
				}
			}
			if err := test.end(run, stdin); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := run.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := run.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d\n%s", got, test.code, stderr)
			}
			await(t, fmt.Sprintf("ended: all of %v", children), func() bool { return !slices.ContainsFunc(children, lives) })
		})
	}
}

// startRun starts a run, gives it one item and waits for the answer, so that all stages work. Its
// input stays open.
func startRun(t *testing.T, state string) (*exec.Cmd, io.WriteCloser, *bytes.Buffer) {
	t.Helper()
	dir := folder(t, map[string]string{"train.tsv": fewIntents(t)})
	run := racflow(t, dir, "run", "--state", state, "-var", "embedder=hashing", "-var", "election=soft", "-var", "train=train.tsv", "--input", "-", intent(t))
	run.Env = append(os.Environ(), "OPENAI_API_KEY=hush", "SOME_TOKEN=hush", "RACFLOW_DUMPABLE=1") // allows a look into its stages
	stderr := &bytes.Buffer{}
	run.Stderr = stderr
	stdout, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, run)
	if _, err := io.WriteString(stdin, "text\nwhere is my parcel\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, `"answer"`) {
		t.Fatalf("the first answer is %q, %v", line, err)
	}
	return run, stdin, stderr
}

func childrenOf(parent int) []int {
	var children []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parentOf(pid) == parent {
			children = append(children, pid)
		}
	}
	return children
}

// lives reports whether a process exists and is not just waiting to be reaped.
func lives(pid int) bool {
	_, rest, found := strings.Cut(readProc(pid, "stat"), ") ")
	return found && !strings.HasPrefix(rest, "Z")
}

func readProc(pid int, file string) string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	return string(content)
}
