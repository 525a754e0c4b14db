package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/program"
)

// Project builds the project in a folder and returns its program, which is named racflow-plugin-NAME
// and lies in that folder. What takes long, and what compilers say, goes to log.
//
// A project in Go has a go.mod whose module ends with racflow-plugin-NAME, one in Python a folder
// racflow-plugin-NAME with a program of that name.
func Project(ctx context.Context, dir string, log io.Writer) (program.Program, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return program.Program{}, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	var path string
	switch {
	case err == nil:
		path, err = compile(ctx, dir, mod, log)
	case errors.Is(err, os.ErrNotExist):
		path, err = prepare(ctx, dir, log)
	}
	if err != nil {
		return program.Program{}, err
	}
	p, err := program.At(path)
	p.Project = dir
	return p, err
}

// run runs a command in a folder and returns what it wrote to both of its streams.
func run(ctx context.Context, dir string, log io.Writer, environment []string, command ...string) (string, error) {
	fmt.Fprintf(log, "%s\n", strings.Join(append([]string{filepath.Base(command[0])}, command[1:]...), " "))
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return said.String(), err
}

// ended is the error of a command that failed: what it said, and what to do.
func ended(what, said string, err error, advice string) error {
	said = strings.TrimSpace(said)
	if most := 4000; len(said) > most {
		said = "...\n" + strings.ToValidUTF8(said[len(said)-most:], "")
	}
	if advice != "" {
		advice = "\n" + advice
	}
	return fmt.Errorf("%s: %w\n%s%s", what, err, said, advice)
}
