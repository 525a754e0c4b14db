package cli

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

func init() { programs["racflow-plugin-mine"] = minePlugin }

// minePlugin is the main function of a third-party plugin whose stages have no fingerprint. Its
// version is the name of its folder.
func minePlugin() {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	version := filepath.Base(filepath.Dir(program))
	serve.Plugin(sdk.Plugin{Name: "mine", Version: version, Stages: []sdk.Stage{
		sdk.EmbedStage("embed", "", func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) { return mine{}, nil }),
		sdk.ChunkStage("chunk", "", func(context.Context, sdk.Setup, struct{}) (sdk.Chunker, error) { return mine{}, nil }),
		sdk.EnrichStage("enrich", "", func(context.Context, sdk.Setup, struct{}) (sdk.Enricher, error) { return mine{}, nil }),
	}})
}

type mine struct{}

func (mine) Dimension() int { return 2 }

func (mine) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		angle := float64(len(text))
		out[i] = []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}
	}
	return out, nil
}

func (mine) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		out[i] = []sdk.Chunk{{End: len(d.Text)}}
	}
	return out, nil
}

func (mine) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return make([]sdk.Addition, len(passages)), nil
}

const mineFile = `
variable "chunk" { default = "recursive" }
variable "enrich" { default = "path" }
variable "embed" { default = "hashing" }
knowledge "k" {
  source { path = "rows.tsv" }
  chunk { use = var.chunk }
  enrich "aside" { use = var.enrich }
  embed { use = var.embed }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "neighbours" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`

// TestAnotherBinaryOfAPlugin replaces the plugin of a stage by other binaries: each searches only
// what it made itself, and the report says why this is made again.
func TestAnotherBinaryOfAPlugin(t *testing.T) {
	leaveTo(t, "command", "it is two dozen runs")
	dir := folder(t, map[string]string{"p.hcl": mineFile, "rows.tsv": rows(20)})
	self, err := os.ReadFile(racflow(t, dir).Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.1.0", "0.2.0", "rebuilt/0.2.0"} {
		self = append(self, 0) // another hash
		path := filepath.Join(dir, version, "racflow-plugin-mine")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, self, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ stage, again string }{
		{"embed", "embedding again"}, {"chunk", "cutting and embedding again"}, {"enrich", "enriching and embedding again"},
	} {
		if testing.Short() && test.stage != "embed" {
			continue
		}
		t.Run(test.stage, func(t *testing.T) {
			verb := func(plugins string, args ...string) string {
				t.Helper()
				c := racflow(t, dir, append(args, "--state", test.stage, "--plugins", plugins, "-var", test.stage+"=mine/"+test.stage, "p.hcl")...)
				return must(t, c)
			}
			const made, kept = "20 entries, 20 embedded with", "20 entries, up to date"
			for _, step := range []struct{ plugins, verb, want, why string }{
				{"0.1.0", "run", made, ""},
				{"0.1.0", "run", kept, ""},
				{"0.2.0", "plan", "", "plugin mine is version 0.2.0, was 0.1.0: " + test.again},
				{"0.2.0", "run", made, "plugin mine is version 0.2.0, was 0.1.0: " + test.again},
				{"0.2.0", "run", kept, ""},
				{"0.1.0", "run", kept, ""}, // what another binary made is still there
				{"rebuilt/0.2.0", "run", made, "plugin mine 0.2.0 is not the same program as before: " + test.again},
				{"rebuilt/0.2.0", "run", kept, ""},
			} {
				out := verb(step.plugins, step.verb)
				if !strings.Contains(out, "plugin mine: development program "+filepath.Join(dir, step.plugins, "racflow-plugin-mine")) {
					t.Errorf("%s does not say what is being developed:\n%.1500s", step.verb, out)
				}
				if !strings.Contains(out, step.want) || !strings.Contains(out, step.why) || step.why == "" && strings.Contains(out, "embedding again") {
					t.Fatalf("%s with %s: want %q and %q in\n%.1500s", step.verb, step.plugins, step.want, step.why, out)
				}
			}
			if list := verb("0.1.0", "knowledge", "list"); strings.Count(list, "mine/"+test.stage+" 0.2.0") != 2 && test.stage != "chunk" {
				t.Errorf("the list does not show the versions:\n%s", list)
			}
			list := verb("0.1.0", "knowledge", "list", "--json")
			if strings.Count(list, `"version":"0.1.0","hash":"sha256:`) != 1 || strings.Count(list, `"version":"0.2.0","hash":"sha256:`) != 2 {
				t.Errorf("the list does not show the binaries:\n%s", list)
			}
		})
	}
}
