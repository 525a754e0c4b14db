package expect_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/expect"
	"github.com/racflow/racflow/engine/model"
)

// without are the values of variables with which a pipeline file works without a model and a
// service, and soon.
var without = map[string]map[string]string{
	"contextual.hcl": {"embedder": "hashing"},
	"intent.hcl":     {"embedder": "hashing", "election": "soft"},
	"keywords.hcl":   {"embedder": "hashing"},
	"rac.hcl":        {"embedder": "hashing", "model": "nobody-is-asked"},
	"rage.hcl":       {"embedder": "hashing"},
	"zero-shot.hcl":  {"model": "nobody-is-asked"},
}

// tested tests what a file expects.
func tested(t *testing.T, path, state string, vars map[string]string) *expect.Report {
	t.Helper()
	t.Setenv("RACFLOW_MODEL", "")
	p, err := engine.Open(t.Context(), path, engine.Options{Builtin: builtin, State: state, Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestShipped: every pipeline file that racflow comes with expects something, and it holds.
func TestShipped(t *testing.T) {
	files, err := filepath.Glob("../../pipelines/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	state := t.TempDir() // shared: what one of them has embedded, the others need not
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			vars := without[filepath.Base(path)]
			r := tested(t, path, state, vars)
			if !r.Holds() || r.Count(expect.Holds) == 0 || r.Incomplete {
				t.Errorf("%+v", r)
			}
			if vars["embedder"] == "" || testing.Short() {
				return
			}
			if !installed(t) {
				t.Skip("without the model of minilm it was tested with hashing alone")
			}
			vars = maps.Clone(vars)
			delete(vars, "embedder")
			delete(vars, "election")
			if r := tested(t, path, state, vars); !r.Holds() || r.Count(expect.Skipped) > 0 {
				t.Errorf("by default: %+v", r)
			}
		})
	}
}

func installed(t *testing.T) bool {
	t.Helper()
	m, err := model.Find("minilm")
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Status()
	return err == nil && s.Installed
}

// TestFails: what cannot hold does not.
func TestFails(t *testing.T) {
	r := tested(t, "testdata/fails.hcl", t.TempDir(), nil)
	if r.Holds() || len(r.Verdicts) < 4 || r.Count(expect.Fails) != len(r.Verdicts) {
		t.Errorf("%+v", r)
	}
}
