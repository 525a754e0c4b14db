package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOf finds the interpreter of a script; the interpreters here report their location as Python
// does.
func TestOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	says := func(executable, prefix, base string) string {
		return "#!/bin/sh\nprintf '%s\\n' " + strings.Join([]string{executable, prefix, prefix, base, base}, " ") + "\n"
	}
	file("shims/python3", says("/opt/py/bin/python3", "/opt/py", "/opt/py"))
	file("shims/python9", "#!/bin/sh\nexit 1\n")
	file("node/bin/node", "\x7fELF")
	file("venv/.venv/bin/python", says("/v/.venv/bin/python", "/v/.venv", "/opt/py"))
	t.Setenv("PATH", strings.Join([]string{filepath.Join(dir, "shims"), filepath.Join(dir, "node/bin"), "/usr/bin", "/bin"}, ":"))
	for name, c := range map[string]struct {
		content       string
		command, read []string // SELF is the program itself, DIR the folder above
		err           string
	}{
		"a/program":    {content: "\x7fELF and so on", command: []string{"SELF"}},
		"a/empty":      {command: []string{"SELF"}},
		"a/shell":      {content: "#!/bin/sh\n", command: []string{"SELF"}},
		"a/unknown":    {content: "#!/usr/bin/env nobody-has-this\n", command: []string{"SELF"}},
		"a/elsewhere":  {content: "#!/usr/bin/env node\n", command: []string{"SELF"}, read: []string{"DIR/node", "DIR/node"}},
		"a/managed":    {content: "#!/usr/bin/env python3\n", command: []string{"/opt/py/bin/python3", "SELF"}, read: []string{"/opt/py"}},
		"a/flagged":    {content: "#!/usr/bin/env -S python3 -u\n", command: []string{"/opt/py/bin/python3", "-u", "SELF"}, read: []string{"/opt/py"}},
		"venv/program": {content: "#!/usr/bin/env python3\n", command: []string{"/v/.venv/bin/python", "SELF"}, read: []string{"/opt/py", "/v/.venv"}},
		"a/broken":     {content: "#!/usr/bin/env python9\n", err: "does not run"},
	} {
		path := file(name, c.content)
		fill := func(all []string) (filled []string) {
			for _, s := range all {
				filled = append(filled, strings.NewReplacer("SELF", path, "DIR", dir).Replace(s))
			}
			return filled
		}
		command, read, err := Interpreter(t.Context(), path)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(command, fill(c.command)) || !slices.Equal(read, fill(c.read)) {
			t.Errorf("%s: got %q, %q, %v", name, command, read, err)
		}
	}
	if _, _, err := Interpreter(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("a program that does not exist has an interpreter")
	}
}
