package build

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/plugin/create"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/python"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// interpreter stands in for Python: it notes how it was called, and makes an environment in which
// it is itself the interpreter. It fails where there is a file named broken.
const interpreter = `#!/bin/sh
echo "$@" >>"$CALLS"
if [ -e broken ]; then echo "No matching distribution" >&2; exit 1; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/python3"; fi
`

// TestPython makes the environment of a project once, and anew after what it is made of has changed.
func TestPython(t *testing.T) {
	tools, project := t.TempDir(), filepath.Join(t.TempDir(), "mine")
	calls := filepath.Join(tools, "calls")
	must.Do(t, os.WriteFile(filepath.Join(tools, "python3"), []byte(interpreter), 0o700))
	t.Setenv("CALLS", calls)
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if _, err := create.Write(project, create.Options{Kind: sdk.KindStore, Name: "mine", Lang: create.Python, SDK: "0.1.0"}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(project, "racflow-plugin-mine")
	build := func(want ...string) {
		t.Helper()
		p, err := Project(t.Context(), project, &bytes.Buffer{})
		must.Do(t, err)
		if p.Name != "mine" || p.Folder != folder || p.Path != filepath.Join(folder, "racflow-plugin-mine") || p.Project != project {
			t.Errorf("the program is %+v", p)
		}
		if hash, err := p.Check(); err != nil || !strings.HasPrefix(hash, "tree:") {
			t.Errorf("its hash is %q, %v", hash, err)
		}
		got, err := os.ReadFile(calls)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		_ = os.Remove(calls)
		lines := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n")
		if len(got) == 0 {
			lines = nil
		}
		if len(lines) != len(want) {
			t.Fatalf("the interpreter was called with %q, want %q", lines, want)
		}
		for i := range want {
			if lines[i] != want[i] {
				t.Errorf("call %d: %q, want %q", i, lines[i], want[i])
			}
		}
	}
	name, content, err := python.Wheel()
	must.Do(t, err)
	environment := filepath.Join(folder, ".venv")
	wheel := filepath.Join(environment, Wheels, name)
	venv := "-m venv " + environment
	install := "-m pip install --quiet --disable-pip-version-check --no-cache-dir " + wheel + " -r requirements.txt"
	build(venv, install)
	if got, err := os.ReadFile(wheel); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the wheel is not the one of racflow: %v", err)
	}
	build() // nothing has changed
	t.Setenv("PATH", filepath.Join(environment, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	build() // the author has activated it
	must.Do(t, os.WriteFile(filepath.Join(folder, "module.py"), nil, 0o600))
	build() // the stage's own code needs nothing
	requirements := filepath.Join(project, "requirements.txt")
	must.Do(t, os.WriteFile(requirements, []byte("numpy<3\n"), 0o600))
	build(venv, install)

	broken := filepath.Join(project, "broken")
	must.Do(t, errors.Join(os.WriteFile(broken, nil, 0o600), os.WriteFile(requirements, []byte("never\n"), 0o600)))
	if _, err := Project(t.Context(), project, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "No matching distribution") || !strings.Contains(err.Error(), "python3-venv") {
		t.Errorf("got %v, want what the interpreter said, and advice", err)
	}
	must.Do(t, errors.Join(os.Remove(broken), os.Remove(calls)))
	build(venv, install) // what failed is made again
}
