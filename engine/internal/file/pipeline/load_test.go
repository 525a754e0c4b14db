package pipeline

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var update = flag.Bool("update", false, "write the diagnostics that Load gives into testdata")

// catalog offers a few stages that open nothing.
type catalog []sdk.Stage

func (c catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	for _, s := range c {
		if s.Kind == kind && s.Name == use {
			return s, true
		}
	}
	return sdk.Stage{}, false
}

func (c catalog) Uses(kind sdk.Kind) []string {
	var all []string
	for _, s := range c {
		if s.Kind == kind {
			all = append(all, s.Name)
		}
	}
	return all
}

type noConfig struct{}

type modelConfig struct {
	Model   string            `config:"model,required" doc:"The model to ask."`
	Key     string            `config:"key,secret" doc:"The API key."`
	Style   string            `config:"style" default:"chat" one_of:"chat,completion" doc:"How it is asked."`
	Heat    float64           `config:"temperature" default:"1" doc:"Temperature."`
	Tokens  int               `config:"max_tokens" default:"50" doc:"Tokens of an answer."`
	Timeout time.Duration     `config:"patience" affects_output:"false" default:"30s" doc:"How long to wait."`
	Stop    []string          `config:"stop" doc:"What ends an answer."`
	Headers map[string]string `config:"headers" doc:"Sent along."`
	Logs    bool              `config:"logs" doc:"Log what is asked."`
	Base    string            `config:"base_url" doc:"The endpoint."`
}

type sizeConfig struct {
	Size int `config:"size" default:"300" doc:"Tokens of a chunk."`
}

type promptConfig struct {
	Template sdk.Path `config:"template" doc:"The template's file."`
}

func stages() Catalog {
	return catalog{
		sdk.ChunkStage("sentences", "", opener[sizeConfig, sdk.Chunker]),
		sdk.EnrichStage("path", "", opener[noConfig, sdk.Enricher]),
		sdk.EnrichStage("context", "", opener[modelConfig, sdk.Enricher], sdk.Network()),
		sdk.EmbedStage("minilm", "", opener[noConfig, sdk.Embedder]),
		sdk.EmbedStage("hashing", "", opener[noConfig, sdk.Embedder]),
		sdk.StoreStage("local", "", opener[noConfig, sdk.Store], sdk.Filters()),
		sdk.StoreStage("milvus", "", opener[struct {
			Address string `config:"address" doc:"host:port"`
		}, sdk.Store]),
		sdk.StoreStage("shared", "", opener[struct {
			Collection string `config:"collection" doc:"One that another program makes."`
			Fields     struct {
				Text string   `config:"text" doc:"The field of texts."`
				Meta []string `config:"meta" doc:"Fields for filters."`
			} `config:"fields" doc:"Its fields." requires:"collection"`
		}, sdk.Store], sdk.Filters(), sdk.Attaches("collection")),
		sdk.PromptStage("completion", "", opener[promptConfig, sdk.Prompter], sdk.Reads(sdk.ColumnCandidates, sdk.ColumnCandidateTexts)),
		sdk.SampleStage("neighbours", "", opener[struct {
			K int `config:"k" default:"15" doc:"How many vote."`
		}, sdk.Sampler], sdk.Reads(sdk.ColumnCandidates)),
		sdk.SampleStage("prototype", "", opener[noConfig, sdk.Sampler], sdk.Reads(sdk.ColumnPrototypes)),
		sdk.SampleStage("openai", "", opener[modelConfig, sdk.Sampler], sdk.Reads(sdk.ColumnPrompts), sdk.Network()),
		sdk.SampleStage("words", "", opener[noConfig, sdk.Sampler], sdk.Fits(sdk.ColumnText)),
		sdk.SampleStage("follower", "", opener[noConfig, sdk.Sampler], sdk.Fits(sdk.ColumnSamples)),
		sdk.ElectStage("stacked", "", opener[noConfig, sdk.Elector], sdk.Fits(sdk.ColumnSamples)),
		sdk.ElectStage("soft", "", opener[noConfig, sdk.Elector]),
		sdk.ElectStage("majority", "", opener[noConfig, sdk.Elector]),
	}
}

func opener[C, T any](context.Context, sdk.Setup, C) (T, error) {
	panic("validation opens nothing")
}

// unpack writes an archive into a folder and reads the options from its comment, a flag per line:
// -var NAME=VALUE, -var-file FILE, -env NAME=VALUE, -input FILE, -dir FOLDER.
func unpack(t testing.TB, a *txtar.Archive) (path string, o Options) {
	t.Helper()
	root := t.TempDir()
	for _, f := range a.Files {
		name := filepath.Join(root, f.Name)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, f.Data, 0o644))
	}
	env := map[string]string{}
	o = Options{Dir: root, Vars: map[string]string{}, Catalog: stages()}
	o.Getenv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for line := range strings.Lines(string(a.Comment)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		key, v, _ := strings.Cut(value, "=")
		switch name {
		case "-var":
			o.Vars[key] = v
		case "-env":
			env[key] = v
		case "-var-file":
			o.VarFiles = append(o.VarFiles, value)
		case "-input":
			o.Input = value
		case "-dir":
			o.Dir = filepath.Join(root, value)
		}
	}
	if o.Dir != root {
		return "../p.hcl", o
	}
	return "p.hcl", o
}

// TestDiagnostics loads each archive of testdata and compares the printed diagnostics with the archive's file "want".
// The file p.hcl is the pipeline.
func TestDiagnostics(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 30 {
		t.Fatalf("%d archives, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			must.Do(t, err)
			path, o := unpack(t, a)
			file, diags := Load(t.Context(), path, o)
			var out bytes.Buffer
			w := hcl.NewDiagnosticTextWriter(&out, file.Sources, 0, false)
			for _, d := range diags {
				if d.Subject != nil { // the writer shows columns only with colour
					fmt.Fprintf(&out, "[%s]\n", d.Subject)
				}
				must.Do(t, w.WriteDiagnostic(d))
			}
			root := filepath.Dir(absolute(path, o.Dir))
			got := strings.ReplaceAll(out.String(), root, "$DIR")
			want := ""
			for i, f := range a.Files {
				if f.Name != "want" {
					continue
				}
				if want = string(f.Data); *update {
					a.Files[i].Data = []byte(got)
				}
			}
			if *update {
				must.Do(t, os.WriteFile(name, txtar.Format(a), 0o644))
				return
			}
			if !diags.HasErrors() {
				t.Error("the file is accepted")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("diagnostics (-want +got):\n%s", d)
			}
		})
	}
}

// TestColumns: the input and the knowledge have separate columns, and each error names the flag for its columns.
func TestColumns(t *testing.T) {
	path, o := unpack(t, txtar.Parse([]byte(`-- p.hcl --
knowledge "k" {
  source {
    path  = "rows.tsv"
    label = "intent"
  }
  embed { use = "minilm" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" { from = knowledge.k }
}
-- rows.tsv --
`)))
	o.Input = "new.tsv"
	o.Columns, o.KnowledgeColumns = map[string]string{"text": "message", "gold": "found"}, map[string]string{"text": "utterance", "context": "title"}
	file, diags := Load(t.Context(), path, o)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, s := range []struct {
		name      string
		got, want source.Mapping
	}{
		{"input", file.Pipelines[0].Input.Mapping(), source.Mapping{ID: "id", Text: "message", Label: "label", Gold: "found", Flag: "--column"}},
		{"knowledge", file.Knowledge[0].Sources[0].Mapping(), source.Mapping{ID: "id", Text: "utterance", Label: "intent", Context: "title", Flag: "--knowledge-column"}},
	} {
		if d := cmp.Diff(s.want, s.got, cmp.AllowUnexported(source.Mapping{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, d)
		}
	}
}
