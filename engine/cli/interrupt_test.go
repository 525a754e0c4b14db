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
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLoadingIsInterrupted sends a signal to each verb while it reads a file of variables that never
// ends.
func TestLoadingIsInterrupted(t *testing.T) {
	long(t)
	dir := folder(t, map[string]string{"p.hcl": hostilePipeline, "items.tsv": "text\tlabel\na\tb\n"})
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, verb := range []string{"validate p.hcl", "plan p.hcl", "run p.hcl", "eval p.hcl", "tune --input items.tsv p.hcl", "ask p.hcl question", "knowledge list p.hcl"} {
		t.Run(verb, func(t *testing.T) {
			c := racflow(t, dir, append(strings.Fields(verb), "-var-file", pipe)...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			start(t, c)
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the verb reads
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if err := c.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[i%2]); err != nil {
				t.Fatal(err)
			}
			expectInterrupted(t, c, &stderr)
		})
	}
}

// TestReadingIsInterrupted sends a signal to verbs that read standard input.
func TestReadingIsInterrupted(t *testing.T) {
	for _, args := range [][]string{{"fmt", "-"}, {"ask", "p.hcl", "-"}} {
		t.Run(args[0], func(t *testing.T) {
			c := racflow(t, t.TempDir(), args...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			stdin, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			start(t, c)
			// More than fits into a pipe: the verb has begun to read.
			if _, err := io.WriteString(stdin, strings.Repeat("x", 100<<10)); err != nil {
				t.Fatal(err)
			}
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			expectInterrupted(t, c, &stderr)
		})
	}
}

// deaf is a command that notices the first signal but does not end.
func deaf() {
	ctx := interruptible()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("noticed")
	time.Sleep(patience)
}

// TestSecondSignal: if the work does not end, the second signal ends it.
func TestSecondSignal(t *testing.T) {
	path, err := exec.LookPath("racflow-deaf")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), path)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"ready", "noticed"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Wait() // its result is in the state
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("got %v", c.ProcessState)
	}
}

// expectInterrupted waits for the end of a command that got a signal.
func expectInterrupted(t *testing.T, c *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) {
		t.Fatalf("got %v", err)
	}
	if code := c.ProcessState.ExitCode(); code != exitInterrupted || strings.TrimSpace(stderr.String()) != "racflow: interrupted" {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
