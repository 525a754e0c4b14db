package live

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin = workspace.Serve(append(plugins.All(), gate(), enginetest.Alphabet(), enginetest.TheirsFile()))

// intent is a pipeline over the rows in a folder.
const intent = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "intent" {
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "vote" { use = "neighbours" }
  elect "e" {
    use    = "soft"
    accept = "answer in labels"
  }
}
`

const fruit = "text\tlabel\nred apple\tfruit\ngreen pear\tfruit\nblue car\tvehicle\nfast train\tvehicle\n"

// folder writes files, and returns options with a state folder beside them.
func folder(t testing.TB, files map[string]string) (string, Options) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir, Options{Engine: workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")}}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// pipeline returns the pipeline with a name; nil: there is none.
func (s *Set) pipeline(name string) *Pipeline {
	for _, p := range s.pipelines {
		if p.name == name {
			return p
		}
	}
	return nil
}

// started opens and starts the pipelines of files in a folder.
func started(t testing.TB, o Options, files ...string) *Set {
	t.Helper()
	s := must.Get(Open(context.Background(), files, o))(t)
	t.Cleanup(s.Close)
	must.Do(t, s.Start(t.Context()))
	return s
}

// ask answers a text, or fails.
func ask(t testing.TB, p *Pipeline, text string) string {
	t.Helper()
	r, err := p.Answer(t.Context(), workspace.Item{Text: text})
	if err == nil && r.Error != nil {
		err = r.Error
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(r.Answer)
}

// generations returns the index versions of the knowledge of a file, and those that a build would
// remove.
func generations(t testing.TB, o Options, file string) (all, superseded []generation.Generation) {
	t.Helper()
	w := must.Get(workspace.NewWorkspace(t.Context(), o.Engine))(t)
	defer w.Close()
	if err := w.Histories(t.Context(), file, func(_ *pipeline.Knowledge, h *generation.History) error {
		all, superseded = append(all, h.Generations...), append(superseded, h.Superseded(true)...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all, superseded
}
