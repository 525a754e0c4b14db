package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startup measures what costs the same however few texts there are: a run of one, whose knowledge
// is there, and the help. "used" is the processor time of all processes.
func (b *bench) startup() (c contender, err error) {
	one, file := filepath.Join(b.scratch, "one.tsv"), filepath.Join(b.root(), "pipelines", "intent.hcl")
	err = os.WriteFile(one, []byte("text\nmy card was stolen yesterday\n"), 0o600)
	c.tasks = map[string]func() (reply, error){"help": b.command("--help")}
	for _, embedder := range []string{"minilm", "hashing"} {
		state := filepath.Join(b.scratch, embedder)
		c.tasks[embedder] = b.command("run", "--state", state, "-var", "embedder="+embedder, "--input", one, file)
		if err == nil {
			_, err = c.tasks[embedder]() // builds the knowledge
		}
	}
	return c, err
}

func (b *bench) command(args ...string) func() (reply, error) {
	return func() (reply, error) {
		command, start := exec.CommandContext(b.ctx, b.binary, args...), time.Now()
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("racflow %s: %w: %s", args[0], err, out)
		}
		used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		return reply{"n": 1, "ms": milliseconds(start), "used": used.Seconds() * 1e3}, nil
	}
}
