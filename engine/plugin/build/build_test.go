package build

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

	"github.com/racflow/racflow/engine/plugin/create"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestGo builds a project as plugin new writes it, and it passes its own tests.
func TestGo(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a plugin and its tests")
	}
	dir := filepath.Join(t.TempDir(), "mine")
	if _, err := create.Write(dir, create.Options{Kind: sdk.KindRerank, Name: "mine", Lang: create.Go, SDK: "../../.."}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p, err := Project(t.Context(), dir, &log)
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

// TestErrors says what to do about what keeps a project from being built.
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
		{"module off", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": "off", "GOFLAGS": ""}, []string{"get the modules", "go env GOPROXY"}},
		{"no such version", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": "file://" + filepath.ToSlash(t.TempDir()), "GOFLAGS": "", "GONOSUMDB": "*"},
			[]string{"get the modules", "v0.0.1-never", "-replace"}},
		{"refused version", map[string]string{"go.mod": needs, "main.go": use}, map[string]string{"GOPROXY": refusing.URL, "GOFLAGS": "", "GONOSUMDB": "*"},
			[]string{"get the modules", "v0.0.1-never", "-replace"}},
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
			_, err := Project(t.Context(), filepath.Join(dir, "mine"), &bytes.Buffer{})
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

// TestCancelled ends with its context.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.org/racflow-plugin-mine\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Project(ctx, dir, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
