package faulty_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/faulty"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

const plugin = "racflow-plugin-faulty"

// nap is how long a child of a stage sleeps: no other process sleeps for exactly this time.
var nap = fmt.Sprintf("3600.%d25", os.Getpid())

var builtin workspace.Builtin

// TestMain makes the test binary also the plugin, and each of its stages.
func TestMain(m *testing.M) {
	local, _ := enginetest.Catalog(plugins.All()).Stage(sdk.KindStore, "local")
	stages := append(faulty.Stages(local), local)
	third := filepath.Base(os.Args[0]) == plugin
	if os.Getenv(wire.CookieKey) == wire.CookieValue && (third || os.Getenv(wire.StageKey) != "") {
		faulty.Serve(stages)
		return
	}
	builtin = workspace.Serve(stages)
	temp, err := os.MkdirTemp("", "faulty") // for sockets, to see which remain
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("TMPDIR", temp)
	code := m.Run()
	_ = os.RemoveAll(temp)
	os.Exit(code)
}

// bench is a folder with a pipeline file and the plugin.
type bench struct {
	*testing.T
	dir, plugins string
}

func newBench(t *testing.T, pipeline, rows string) bench {
	t.Helper()
	b := bench{T: t, dir: t.TempDir(), plugins: t.TempDir()}
	self, err := os.Executable()
	if err == nil {
		err = copied(self, filepath.Join(b.plugins, plugin))
	}
	must.Do(t, err)
	b.write("p.hcl", pipeline)
	b.write("rows.tsv", rows)
	return b
}

func copied(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o700) //nolint:gosec // it is a program
}

func (b bench) write(name, content string) {
	b.Helper()
	must.Do(b, os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600))
}

// open opens the pipeline with values of its variables. report gets the report of the knowledge's
// build.
func (b bench) open(state string, vars map[string]string, report *knowledge.BuildReport) *workspace.Pipeline {
	b.Helper()
	p, err := workspace.Open(b.Context(), filepath.Join(b.dir, "p.hcl"), workspace.Options{
		Builtin: builtin, State: filepath.Join(b.dir, state), Plugins: []string{b.plugins}, Vars: vars,
		Events: workspace.Events{Knowledge: func(r knowledge.BuildReport) {
			if report != nil {
				*report = r
			}
		}},
	})
	must.Do(b, err)
	b.Cleanup(p.Close)
	return p
}

// answers returns the results of items: a line of JSON or, with a leading !, the error.
func (b bench) answers(p *workspace.Pipeline, texts []string) (all []string) {
	b.Helper()
	items := func(yield func(workspace.Item) bool) {
		for _, text := range texts {
			if !yield(workspace.Item{Text: text}) {
				return
			}
		}
	}
	for r, err := range p.Run(b.Context(), items) {
		if err != nil {
			b.Fatalf("the run ended after %d items: %v", len(all), err)
		}
		line, err := json.Marshal(r)
		must.Do(b, err)
		if r.Error != nil {
			line = []byte("!" + r.Error.Error())
		}
		all = append(all, string(line))
	}
	if len(all) != len(texts) {
		b.Fatalf("%d of %d items have a result", len(all), len(texts))
	}
	return all
}

// leavesNothing checks, after everything is closed, that no process and no socket remains.
func (b bench) leavesNothing() {
	b.Helper()
	left, err := os.ReadDir(os.TempDir())
	must.Do(b, err)
	for _, e := range left {
		if !strings.HasPrefix(e.Name(), "Test") {
			b.Errorf("%s is left in the folder for temporary files", e.Name())
		}
	}
	of, _ := filepath.Glob("/proc/[0-9]*/cmdline") // empty on other systems
	for _, path := range of {
		line, _ := os.ReadFile(path)
		if name := string(line); strings.Contains(name, b.plugins) || strings.Contains(name, nap) {
			b.Errorf("%s still runs: %q", filepath.Dir(path), name)
		}
	}
}
