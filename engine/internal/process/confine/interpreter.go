package confine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// This file finds the interpreter of a script and the files that it reads, because a confined
// program cannot see interpreters and libraries in a user's home folder by itself.

// Interpreter returns the command that runs a program, and the files and folders of its interpreter
// that are not part of the system. A Python script runs with the .venv in its folder, or else with
// the Python that the user would get. Interpreter resolves that Python, because the one in PATH may
// be a version manager's script, which needs more access than a plugin gets.
func Interpreter(ctx context.Context, path string) (command, read []string, err error) {
	line, err := firstLine(path)
	if err != nil {
		return nil, nil, err
	}
	words, ok := strings.CutPrefix(line, "#!")
	parts := strings.Fields(words)
	if !ok || len(parts) == 0 {
		return []string{path}, nil, nil
	}
	if filepath.Base(parts[0]) == "env" {
		parts = slices.DeleteFunc(parts[1:], func(p string) bool { return p == "-S" })
	}
	if len(parts) == 0 {
		return []string{path}, nil, nil
	}
	if !strings.HasPrefix(filepath.Base(parts[0]), "python") {
		found, err := exec.LookPath(parts[0])
		if err != nil || isSystem(found) {
			return []string{path}, nil, nil //nolint:nilerr // starting it will report the reason
		}
		return []string{path}, []string{prefix(found), prefix(real(found))}, nil
	}
	at := filepath.Join(filepath.Dir(path), ".venv", "bin", "python")
	if _, err := os.Stat(at); err != nil {
		if at, err = exec.LookPath(parts[0]); err != nil {
			return []string{path}, nil, nil //nolint:nilerr // starting it will report the reason
		}
	}
	python, err := askInterpreter(ctx, at, filepath.Dir(path))
	if err != nil {
		return nil, nil, fmt.Errorf("find the Python that runs %s: %w", path, err)
	}
	return slices.Concat([]string{python.executable}, parts[1:], []string{path}), python.read, nil
}

func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if err != nil && err != io.EOF { //nolint:errorlint // as bufio returns it
		return "", err
	}
	return line, nil
}

// isSystem reports whether a program is part of the system, which every plugin may read.
func isSystem(path string) bool {
	path = real(path)
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/nix/store/", "/gnu/store/"}, func(dir string) bool { return strings.HasPrefix(path, dir) })
}

// real returns a path without symbolic links.
func real(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return path
}

// prefix returns the installation folder of a program in a folder bin; of any other, the program.
func prefix(program string) string {
	dir := filepath.Dir(program)
	if filepath.Base(dir) == "bin" {
		return filepath.Dir(dir)
	}
	return program
}

// python is a Python interpreter with the paths that it reads.
type python struct {
	executable string
	read       []string
}

// asked caches interpreters by path and folder, because the scripts of version managers choose by
// the folder.
var asked sync.Map

// askInterpreter asks an interpreter for its location. It runs no code of the plugin.
func askInterpreter(ctx context.Context, at, dir string) (python, error) {
	if isSystem(at) && !strings.Contains(at, "/.venv/") {
		return python{executable: at}, nil
	}
	key := [2]string{at, dir}
	if p, ok := asked.Load(key); ok {
		return p.(python), nil
	}
	cmd := exec.CommandContext(ctx, at, "-I", "-c", "import sys\nprint(sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, sep='\\n')")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return python{}, fmt.Errorf("%s does not run: %w", at, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 5 || !filepath.IsAbs(lines[0]) {
		return python{}, fmt.Errorf("%s does not say where it is: %q", at, out)
	}
	p := python{executable: lines[0], read: lines[1:]}
	slices.Sort(p.read)
	p.read = slices.Compact(p.read)
	asked.Store(key, p)
	return p, nil
}
