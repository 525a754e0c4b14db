package verify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/python"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestBuildGo builds a project as plugin new writes it, which then passes its own tests.
func TestBuildGo(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a plugin and its tests")
	}
	dir := filepath.Join(t.TempDir(), "mine")
	if _, err := WriteProject(dir, ProjectOptions{Kind: sdk.KindRerank, Name: "mine", Lang: TemplateGo, SDK: "../../../.."}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p, err := BuildProject(t.Context(), dir, &log)
	must.Do(t, err)
	if p.Name != "mine" || p.Path != filepath.Join(dir, "racflow-plugin-mine") || p.Folder != "" || p.Project != dir {
		t.Errorf("the program is %+v", p)
	}
	if hash, err := p.Check(); err != nil || !strings.HasPrefix(hash, "sha256:") {
		t.Errorf("its hash is %q, %v", hash, err)
	}
	if !strings.Contains(log.String(), "go build") {
		t.Errorf("the log does not say what was done: %q", log.String())
	}
	test := exec.Command("go", "test", "./...")
	test.Dir = dir
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("its tests: %v\n%s", err, out)
	}
}

// TestErrors gives advice about everything that prevents building a project.
func TestErrors(t *testing.T) {
	const module = "module example.org/racflow-plugin-mine\n\ngo 1.26.0\n"
	const needs = module + "\nrequire github.com/racflow/racflow v0.0.1-never\n"
	const use = "package main\n\nimport _ \"github.com/racflow/racflow/sdk\"\n\nfunc main() {}\n"
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	for _, row := range []struct {
		name  string
		files map[string]string
		env   map[string]string
		want  []string
	}{
		{"no project", nil, nil, []string{"is not the folder of a plugin's project", "racflow plugin new"}},
		{"no such folder", map[string]string{"../other/x": ""}, nil, []string{"is not the folder of a plugin's project"}},
		{"name", map[string]string{"go.mod": "module example.org/mine\n"}, nil, []string{"go.mod", `"example.org/mine"`, "racflow-plugin-NAME"}},
		{"no Go", map[string]string{"go.mod": module}, map[string]string{"PATH": ""}, []string{"written in Go", "https://go.dev/dl"}},
		{"no Python", map[string]string{"racflow-plugin-a/racflow-plugin-a": ""}, map[string]string{"PATH": ""}, []string{"written in Python", "python.org"}},
		{"two plugins", map[string]string{"racflow-plugin-a/racflow-plugin-a": "", "racflow-plugin-b/racflow-plugin-b": ""}, nil, []string{"several plugins"}},
		{"wrong code", map[string]string{"go.mod": module, "main.go": "package main\n\nfunc main() { return 1 }\n"}, nil, []string{"build the plugin", "main.go:3"}},
		{"module off", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": "off", "GOFLAGS": ""}, []string{"get the modules", "go env GOPROXY", "--sdk FOLDER", "-replace"}},
		{"racflow itself", map[string]string{"go.mod": "module github.com/racflow/racflow\n"}, nil, []string{"racflow itself", "--sdk PATH", "builtin:KIND/NAME"}},
		{"no such version", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": "file://" + filepath.ToSlash(t.TempDir()), "GOFLAGS": "", "GONOSUMDB": "*"},
			[]string{"get the modules", "v0.0.1-never", "-replace", "--sdk FOLDER"}},
		{"refused version", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": refusing.URL, "GOFLAGS": "", "GONOSUMDB": "*"},
			[]string{"get the modules", "v0.0.1-never", "-replace", "--sdk FOLDER"}},
		{"newer Go", map[string]string{"go.mod": strings.Replace(module, "1.26.0", "1.99.0", 1), "main.go": "package main\n\nfunc main() {}\n"}, map[string]string{"GOTOOLCHAIN": "local"},
			[]string{"1.99", "GOTOOLCHAIN"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range row.files {
				to := filepath.Join(dir, "mine", name)
				must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(content), 0o600)))
			}
			for name, value := range row.env {
				t.Setenv(name, value)
			}
			_, err := BuildProject(t.Context(), filepath.Join(dir, "mine"), &bytes.Buffer{})
			if err == nil {
				t.Fatal("it was built")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// TestAdviceFor names a checkout only if racflow's own module is missing.
func TestAdviceFor(t *testing.T) {
	for said, want := range map[string]bool{
		"github.com/racflow/racflow@v0.1.0: dial tcp: lookup proxy: no such host": true,
		"example.org/other@v0.1.0: dial tcp: lookup proxy: no such host":          false,
		"main.go:3:1: syntax error": false,
	} {
		if got := adviceFor(said); strings.Contains(got, "--sdk") != want {
			t.Errorf("%q: %q", said, got)
		}
	}
}

// TestCancelled: a build ends with its context.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.org/racflow-plugin-mine\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := BuildProject(ctx, dir, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// interpreter replaces Python. It records how it was called, and makes an environment in which it is
// itself the interpreter. It fails if there is a file named broken.
const interpreter = `#!/bin/sh
echo "$@" >>"$CALLS"
if [ -e broken ]; then echo "No matching distribution" >&2; exit 1; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/python3"; fi
`

// TestPython makes the environment of a project once, and again after its inputs have changed.
func TestPython(t *testing.T) {
	tools, project := t.TempDir(), filepath.Join(t.TempDir(), "mine")
	calls := filepath.Join(tools, "calls")
	must.Do(t, os.WriteFile(filepath.Join(tools, "python3"), []byte(interpreter), 0o700))
	t.Setenv("CALLS", calls)
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if _, err := WriteProject(project, ProjectOptions{Kind: sdk.KindStore, Name: "mine", Lang: TemplatePython, SDK: "0.1.0"}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(project, "racflow-plugin-mine")
	build := func(want ...string) {
		t.Helper()
		p, err := BuildProject(t.Context(), project, &bytes.Buffer{})
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
	build() // the author has activated the environment
	must.Do(t, os.WriteFile(filepath.Join(folder, "module.py"), nil, 0o600))
	build() // the stage's own code needs no rebuild
	requirements := filepath.Join(project, "requirements.txt")
	must.Do(t, os.WriteFile(requirements, []byte("numpy<3\n"), 0o600))
	build(venv, install)

	broken := filepath.Join(project, "broken")
	must.Do(t, errors.Join(os.WriteFile(broken, nil, 0o600), os.WriteFile(requirements, []byte("never\n"), 0o600)))
	if _, err := BuildProject(t.Context(), project, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "No matching distribution") || !strings.Contains(err.Error(), "python3-venv") {
		t.Errorf("got %v, want what the interpreter said, and advice", err)
	}
	must.Do(t, errors.Join(os.Remove(broken), os.Remove(calls)))
	build(venv, install) // a failed environment is made again
}
