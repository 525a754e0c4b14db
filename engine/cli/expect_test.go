package cli

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
)

// modelless holds the values of variables with which a pipeline file runs quickly, without a model
// and a service.
var modelless = map[string]map[string]string{
	"contextual.hcl": {"embedder": "hashing"},
	"intent.hcl":     {"embedder": "hashing", "election": "soft"},
	"keywords.hcl":   {"embedder": "hashing"},
	"rac.hcl":        {"embedder": "hashing", "model": "nobody-is-asked"},
	"rage.hcl":       {"embedder": "hashing"},
	"tags.hcl":       {"embedder": "hashing"},
	"zero-shot.hcl":  {"model": "nobody-is-asked"},
}

// expectedOf tests the expectations of a file.
func expectedOf(t *testing.T, path, state string, vars map[string]string) *expect.Report {
	t.Helper()
	t.Setenv("RACFLOW_MODEL", "")
	p, err := workspace.Open(t.Context(), path, workspace.Options{Builtin: builtin, State: state, Vars: vars})
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

// TestShipped: every pipeline file that racflow ships has expectations, and meets them.
func TestShipped(t *testing.T) {
	files, err := filepath.Glob("../../pipelines/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	state := t.TempDir() // shared, so that each text is embedded once
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			vars := modelless[filepath.Base(path)]
			r := expectedOf(t, path, state, vars)
			if !r.Holds() || r.Count(expect.Holds) == 0 || r.Incomplete {
				t.Errorf("%+v", r)
			}
			if vars["embedder"] == "" || testing.Short() {
				return
			}
			if !hasMiniLM() {
				t.Skip("without the model of minilm it was tested with hashing alone")
			}
			vars = maps.Clone(vars)
			delete(vars, "embedder")
			delete(vars, "election")
			if r := expectedOf(t, path, state, vars); !r.Holds() || r.Count(expect.Skipped) > 0 {
				t.Errorf("by default: %+v", r)
			}
		})
	}
}

// TestFails: expectations that cannot be met fail.
func TestFails(t *testing.T) {
	r := expectedOf(t, "testdata/expect/fails.hcl", t.TempDir(), nil)
	if r.Holds() || len(r.Verdicts) < 4 || r.Count(expect.Fails) != len(r.Verdicts) {
		t.Errorf("%+v", r)
	}
}
