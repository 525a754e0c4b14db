package cli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// harmConfig is the config of a stage that some texts end.
type harmConfig struct {
	Harmless bool `config:"harmless" doc:"They do not."`
}

// harmPlugin is the main function of a third party's plugin; see TestMain.
func harmPlugin() {
	serve.Plugin(sdk.Plugin{Name: "harm", Version: "1.2.3", Stages: []sdk.Stage{
		sdk.SampleStage("voter", "Votes.", func(_ context.Context, _ sdk.Setup, c harmConfig) (sdk.Sampler, error) { return harm{c}, nil }, sdk.Reads(sdk.ColumnText)),
		sdk.EmbedStage("embedder", "Embeds.", func(_ context.Context, _ sdk.Setup, c harmConfig) (sdk.Embedder, error) { return harm{c}, nil }),
		sdk.ChunkStage("chunker", "Cuts.", func(_ context.Context, _ sdk.Setup, c harmConfig) (sdk.Chunker, error) { return harm{c}, nil }),
		sdk.EnrichStage("enricher", "Adds.", func(_ context.Context, _ sdk.Setup, c harmConfig) (sdk.Enricher, error) { return harm{c}, nil }),
	}})
}

type harm struct{ config harmConfig }

// read does what a text says.
func (h harm) read(text string) {
	switch {
	case h.config.Harmless:
	case strings.Contains(text, "panic"):
		go func() { panic("out of cheese") }()
		select {}
	case strings.Contains(text, "die"):
		fmt.Fprintln(os.Stderr, "goodbye, cruel world")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (h harm) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		h.read(it.Text)
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Text, Weight: 1}}}}
	}
	return all, nil
}

func (harm) Dimension() int { return 2 }

func (h harm) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		h.read(text)
		all[i] = []float32{.6, .8}
	}
	return all, nil
}

func (h harm) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	all := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		h.read(d.Text)
		all[i] = []sdk.Chunk{{End: len(d.Text)}}
	}
	return all, nil
}

func (h harm) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	all := make([]sdk.Addition, len(passages))
	for i, p := range passages {
		h.read(p.Text())
		all[i] = sdk.Addition{Context: "of " + p.Document.ID}
	}
	return all, nil
}

// harmed runs a pipeline over 200 texts, one of which is poison, and returns what it
// printed.
func harmed(t *testing.T, file, poison string, args ...string) (code int, stdout []string, stderr string) {
	t.Helper()
	rows := strings.Replace("text\n"+numbered(200, "text %d\n"), "text 77\n", poison+"\n", 1)
	dir := folder(t, map[string]string{"p.hcl": file, "rows.tsv": rows})
	linkPlugin(t, dir, "harm")
	code, out, stderr := ran(t, racflow(t, dir, append(append([]string{"run", "--plugins", "."}, args...), "p.hcl")...))
	return code, strings.SplitAfter(out, "\n"), stderr
}

// The words of an error about a row that ends the process of a stage of harmPlugin. How often it has done so
// alone depends on what else the process had answered: it is blamed only for the end of a fresh one.
const harmEnded = `: plugin harm 1\.2\.3: the stage's process ended while it worked on this, (again|[2-6] times): `

var harmWords = map[string]string{
	"die":   harmEnded + `killed by signal 9 \(SIGKILL\), which is also what the system does when memory ends: .* memory = "2GiB"; its last words:\s*goodbye, cruel world`,
	"panic": harmEnded + `exit status 2, panic: out of cheese at \S*/harm_test\.go:\d+; its last words:`,
}

// TestARowThatEndsItsStage: exactly that row fails, its message says how, and the
// others are as if it were not there.
func TestARowThatEndsItsStage(t *testing.T) {
	long(t)
	const file = `
variable "harmless" { default = false }
pipeline "p" {
  input { path = "rows.tsv" }
  sample "mine" {
    use = "harm/voter"
    config { harmless = var.harmless }
  }
  elect "e" { use = "majority" }
}
`
	for poison, words := range harmWords {
		t.Run(poison, func(t *testing.T) {
			_, want, _ := harmed(t, file, poison, "-var", "harmless=true")
			code, got, stderr := harmed(t, file, poison)
			if code != exitItemsFailed || len(got) != len(want) || len(want) != 201 {
				t.Fatalf("exit code %d, %d lines, want %d\n%s", code, len(got), len(want), stderr)
			}
			for i := range want {
				if i != 77 && got[i] != want[i] {
					t.Errorf("line %d: got %s, undisturbed %s", i, got[i], want[i])
				}
			}
			if !strings.Contains(got[77], `"stage":"sample.mine"`) || !regexp.MustCompile("line 79 failed: sample.mine"+words).MatchString(stderr) {
				t.Errorf("got %s\n%s", got[77], stderr)
			}
		})
	}
}

// TestARowThatEndsABuild: the same where knowledge is built, by whichever stage.
func TestARowThatEndsABuild(t *testing.T) {
	long(t)
	const embed = `embed { use = "hashing" }`
	for name, c := range map[string]struct{ stages, poison, reported string }{
		"embed":  {`embed { use = "harm/embedder" }`, "panic", `rows\.tsv:79: embed\.k`},
		"chunk":  {"chunk { use = \"harm/chunker\" }\n" + embed, "die", `rows\.tsv:79: cut into chunks: chunk\.k`},
		"enrich": {"enrich \"mine\" {\n use = \"harm/enricher\"\n lexical = true\n }\n" + embed, "die", `rows\.tsv:79: enrich\.mine`},
	} {
		t.Run(name, func(t *testing.T) {
			file := fmt.Sprintf(`
knowledge "k" {
  source { path = "rows.tsv" }
  %s
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "near" {
    from = knowledge.k
    mode = "lexical"
  }
}
`, c.stages)
			code, got, stderr := harmed(t, file, c.poison)
			if code != exitItemsFailed || len(got) != 201 {
				t.Errorf("exit code %d, %d lines", code, len(got))
			}
			entries := "199 entries"
			if name == "enrich" {
				entries = "200 entries"
			}
			if !strings.Contains(stderr, entries) || !regexp.MustCompile(c.reported+harmWords[c.poison]).MatchString(stderr) {
				t.Errorf("got\n%s", stderr)
			}
		})
	}
}
