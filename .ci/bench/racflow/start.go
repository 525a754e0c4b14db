package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startup measures what is the same however few texts there are: a run of one, whose knowledge is
// there, and the help. "used" is the processor time of all processes.
func (b *bench) startup() (c contender, err error) {
	one := filepath.Join(b.scratch, "one.tsv")
	if err := os.WriteFile(one, []byte("text\nmy card was stolen yesterday\n"), 0o600); err != nil {
		return c, err
	}
	c.tasks = map[string]func() (reply, error){"help": b.command("--help")}
	for _, embedder := range []string{"minilm", "hashing"} {
		task := b.command("run", "--state", filepath.Join(b.scratch, embedder), "-var", "embedder="+embedder, "--input", one,
			filepath.Join(filepath.Dir(b.binary), "..", "pipelines", "intent.hcl"))
		if _, err := task(); err != nil { // builds the knowledge
			return c, err
		}
		c.tasks[embedder] = task
	}
	return c, nil
}

// command is the task of running racflow.
func (b *bench) command(args ...string) func() (reply, error) {
	return func() (reply, error) {
		command := exec.CommandContext(b.ctx, b.binary, args...)
		start := time.Now()
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("racflow %s: %w: %s", args[0], err, out)
		}
		used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		return reply{"n": 1, "ms": milliseconds(start), "used": used.Seconds() * 1e3}, nil
	}
}
