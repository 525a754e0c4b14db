package shipment_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/remote/shipment"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin = engine.Serve(append(enginetest.Stages(), teller(), minilm()))

type telling struct {
	Key      string   `config:"api_key,secret" doc:"Key."`
	Template sdk.Path `config:"template" doc:"Template."`
	Model    sdk.Path `config:"model" doc:"Folder of a model."`
	Cert     sdk.Path `config:"cert" affects_output:"false" doc:"Key file."`
	System   string   `config:"system" doc:"Text."`
	Region   string   `config:"region" affects_output:"false" doc:"Where."`
}

// teller is a voter that is only opened.
func teller() sdk.Stage {
	return sdk.SampleStage("teller", "Tells nothing.", func(context.Context, sdk.Setup, telling) (sdk.Sampler, error) {
		return nil, errors.New("nobody asks it")
	})
}

// minilm is called as a model of racflow's list, which it works with where no other is named.
func minilm() sdk.Stage {
	return sdk.EmbedStage("minilm", "Embeds nothing.", func(context.Context, sdk.Setup, struct {
		Model sdk.Path `config:"model" doc:"Folder of a model."`
	}) (sdk.Embedder, error) {
		return nil, errors.New("nobody asks it")
	})
}

const file = `
variable "topic" {}
variable "place" { default = "here" }
variable "depth" { default = 1 }
variable "notes" { type = path }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
knowledge "pages" {
  source { path = "pages" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "tell" {
    use = "teller"
    config {
      api_key  = secret("TELLER_KEY", "none-at-all")
      template = "templates/a.tmpl"
      model    = "models/m"
      system   = "${file("../shared/system.txt")} ${file(var.notes)} ${var.topic} ${var.place} ${var.depth}"
      region   = env("TELLER_REGION", "nowhere")
    }
  }
  elect "e" { use = "soft" }
}
pipeline "other" {
  sample "tell" {
    use = "teller"
    config { template = "templates/b.tmpl" }
  }
  elect "e" { use = "soft" }
}
`

// world is a caller's machine.
type world struct {
	t    *testing.T
	root string
	o    engine.Options
	env  map[string]string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, root: t.TempDir(), env: map[string]string{"RACFLOW_VAR_place": "Bergen"}}
	for name, content := range map[string]string{
		"project/p.hcl": file, "project/rows.tsv": "text\tlabel\na\tb\n", "project/items.tsv": "text\na\n", "project/pages/a.md": "# A\n",
		"project/templates/a.tmpl": "A template", "project/templates/b.tmpl": "B template", "shared/system.txt": "Be brief.", "desk/notes.txt": "A note.",
		"desk/vars.hcl": "depth = 2 # deeper\n", "project/models/m/config.json": `{"model_type":"bert"}`, "project/models/m/model.safetensors": "weights",
	} {
		w.write(name, content)
	}
	w.o = engine.Options{
		Builtin: builtin, State: filepath.Join(w.root, "state"), Dir: filepath.Join(w.root, "desk"), Pipeline: "p", VarFiles: []string{"vars.hcl"},
		Vars: map[string]string{"topic": "cheese", "notes": "notes.txt"},
	}
	w.o.Getenv = func(name string) (string, bool) {
		value, ok := w.env[name]
		return value, ok
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *world) write(name, content string) {
	w.t.Helper()
	must.Do(w.t, errors.Join(os.MkdirAll(filepath.Dir(w.path(name)), 0o755), os.WriteFile(w.path(name), []byte(content), 0o644)))
}

func (w *world) open() *engine.Pipeline {
	w.t.Helper()
	p := must.Get(engine.Open(w.t.Context(), w.path("project/p.hcl"), w.o))(w.t)
	w.t.Cleanup(p.Close)
	return p
}

// bundled is the bundle as it arrives at a worker.
func (w *world) bundled() shipment.Bundle {
	w.t.Helper()
	b := must.Get(shipment.NewBundle(w.open()))(w.t)
	text := must.Get(json.Marshal(b))(w.t)
	var arrived shipment.Bundle
	must.Do(w.t, json.Unmarshal(text, &arrived))
	return arrived
}

// gone makes the caller's machine another one.
func (w *world) gone() {
	w.t.Helper()
	must.Do(w.t, os.Rename(w.root, w.root+".gone"))
}

// objects are files at servers.
type objects map[string][]byte

func (o objects) HasFile(_ context.Context, digest string) (bool, error) {
	_, ok := o[digest]
	return ok, nil
}

func (o objects) PutFile(_ context.Context, digest string, r io.Reader) (err error) {
	o[digest], err = io.ReadAll(r)
	return err
}

func (o objects) GetFile(_ context.Context, digest string, w io.Writer) error {
	if o[digest] == nil {
		return errors.New("there is no such object")
	}
	_, err := w.Write(o[digest])
	return err
}

// worker is a machine with a model, that is called otherwise there, and without variables.
func worker(t *testing.T) (shipment.BundlePlace, map[string]string) {
	t.Helper()
	models := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(models, "m"), 0o755), os.WriteFile(filepath.Join(models, "m", "model.safetensors"), []byte("weights"), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	env := map[string]string{}
	state := filepath.Join(t.TempDir(), "state")
	return shipment.BundlePlace{State: state, Kept: shipment.KeptFiles{Dir: filepath.Join(state, "kept")}, Models: []string{models}, Getenv: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}}, env
}

// unpacked is the pipeline as a worker opens it.
func unpacked(t *testing.T, b shipment.Bundle, servers objects, at shipment.BundlePlace) *engine.Pipeline {
	t.Helper()
	path, o, err := b.Unpack(t.Context(), servers, at)
	if err != nil {
		t.Fatal(err)
	}
	o.Builtin, o.Part = builtin, &engine.Part{}
	p := must.Get(engine.Open(t.Context(), path, o))(t)
	t.Cleanup(p.Close)
	return p
}

// configOf is what a stage opens with, with the contents of files in the place of their paths.
func configOf(t *testing.T, p *engine.Pipeline) map[string]string {
	t.Helper()
	var config map[string]string
	for _, s := range p.Definition().Stages {
		if s.Name == "tell" {
			must.Do(t, json.Unmarshal(s.Config.Open, &config))
		}
	}
	for name, value := range config {
		if name == "model" {
			value = filepath.Join(value, "model.safetensors")
		}
		if content, err := os.ReadFile(value); err == nil {
			config[name] = string(content)
		}
	}
	return config
}

// A worker that has nothing of the caller's disk opens the same pipeline: all that results depend on is the same, and
// stages open with files that have the same content. What the worker's environment has counts only where the
// caller had it, or kept it secret.
func TestSamePipeline(t *testing.T) {
	w := newWorld(t)
	before := w.open()
	parts, config := pipeline.PartDigests(before.Definition()), configOf(t, before)
	b := w.bundled()
	w.gone()
	at, env := worker(t)
	env["RACFLOW_VAR_place"], env["RACFLOW_VAR_depth"], env["TELLER_REGION"], env["TELLER_KEY"] = "Oslo", "7", "north", "their own key"
	p := unpacked(t, b, objects{}, at)
	if diff := cmp.Diff(parts, pipeline.PartDigests(p.Definition())); diff != "" {
		t.Errorf("what results depend on (-caller +worker):\n%s", diff)
	}
	config["api_key"] = "their own key"
	if diff := cmp.Diff(config, configOf(t, p)); diff != "" {
		t.Errorf("the config (-caller +worker):\n%s", diff)
	}
	if got := p.File().Knowledge[1].Documents(); got == nil || got.Path != w.path("project/pages") {
		t.Errorf("the folder of pages: %+v", got)
	}
	for k, before := range before.File().Knowledge {
		if pipeline.KnowledgeDigest(before) != pipeline.KnowledgeDigest(p.File().Knowledge[k]) {
			t.Errorf("knowledge %q differs", before.Name)
		}
	}
	err := filepath.WalkDir(at.State, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && path != at.State {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The same file has the same bundle, also where variables are taken out of it.
func TestOneBundle(t *testing.T) {
	w := newWorld(t)
	w.write("project/p.hcl", strings.Replace(file, `secret("TELLER_KEY", "none-at-all")`, "var.topic", 1))
	delete(w.o.Vars, "topic")
	w.write("desk/vars.hcl", "depth = 2\ntopic = \"sk-8db2f01c\"\nplace = \"a\"\nnotes = \"notes.txt\"\n")
	first := w.bundled()
	for range 20 {
		if diff := cmp.Diff(first, w.bundled()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Large files are objects, which are sent and loaded once.
func TestLarge(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("A large template. ", 10_000)
	w.write("project/templates/a.tmpl", large)
	b := must.Get(shipment.NewBundle(w.open()))(t)
	servers := objects{}
	must.Do(t, b.Put(t.Context(), servers))
	if len(servers) != 1 || !slices.Equal(b.Digests(), slices.Collect(maps.Keys(servers))) {
		t.Errorf("%d objects, %v", len(servers), b.Digests())
	}
	if text, _ := json.Marshal(b); len(text) > 20_000 {
		t.Errorf("the definition has %d bytes", len(text))
	}
	at, env := worker(t)
	env["RACFLOW_VAR_place"] = "Bergen"
	for range 2 {
		if configOf(t, unpacked(t, b, servers, at))["template"] != large {
			t.Error("another template")
		}
		clear(servers) // the second time nothing is loaded
	}
	w.write("project/templates/a.tmpl", large+"more")
	if err := b.Put(t.Context(), objects{}); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("a file that was changed: %v", err)
	}
}

// A bundle writes nothing outside of its folder, and nothing that is not what it says.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	good := w.bundled()
	for name, change := range map[string]func(*shipment.Bundle){
		"up":            func(b *shipment.Bundle) { b.Files[0].Path = "/a/../../../up" },
		"relative":      func(b *shipment.Bundle) { b.Files[0].Path = "relative" },
		"up, relative":  func(b *shipment.Bundle) { b.Files[0].Path = "../up" },
		"empty":         func(b *shipment.Bundle) { b.Files[0].Path = "" },
		"root":          func(b *shipment.Bundle) { b.Files[0].Path = "/" },
		"source":        func(b *shipment.Bundle) { b.Sources[0].Path = "/../../up" },
		"another":       func(b *shipment.Bundle) { b.Files[0].Content = []byte("another content") },
		"digest":        func(b *shipment.Bundle) { b.Files[0].Content, b.Files[0].Digest = nil, "../../up" },
		"object":        func(b *shipment.Bundle) { b.Files[0].Content = nil },
		"no such thing": func(b *shipment.Bundle) { b.Files[0].Content, b.Files[0].Digest = nil, strings.Repeat("a", 64) },
	} {
		t.Run(name, func(t *testing.T) {
			b := good
			b.Files, b.Sources = slices.Clone(good.Files), slices.Clone(good.Sources)
			change(&b)
			at, env := worker(t)
			env["RACFLOW_VAR_place"] = "Bergen"
			outer := filepath.Dir(at.State)
			_, _, err := b.Unpack(t.Context(), objects{strings.Repeat("a", 64): []byte("something else")}, at)
			var lacks *shipment.LacksError
			if err == nil || errors.As(err, &lacks) {
				t.Errorf("it was taken: %v", err)
			}
			if left, err := os.ReadDir(outer); err != nil || len(left) != 1 {
				t.Errorf("left outside: %v, %v", left, err)
			}
			kept, _ := os.ReadDir(at.Kept.Dir)
			if len(kept) > 0 {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}
