package verify

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"golang.org/x/mod/modfile"

	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/sdk"
)

// each runs a test for each template.
func each(t *testing.T, test func(t *testing.T, o ProjectOptions, files map[string][]byte)) {
	for _, kind := range catalog.Kinds {
		for _, lang := range []string{TemplateGo, TemplatePython} {
			t.Run(lang+"/"+string(kind), func(t *testing.T) {
				o := ProjectOptions{Kind: kind, Name: "my-stage", Lang: lang, SDK: "1.2.3"}
				files, err := projectFiles(o)
				if err != nil {
					t.Fatal(err)
				}
				test(t, o, files)
			})
		}
	}
}

// TestFiles checks that written files are formatted as by their language's tools, and contain no
// placeholder.
func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, o ProjectOptions, files map[string][]byte) {
		for path, file := range files {
			if bytes.Contains(file, []byte("<<.")) || bytes.Contains(file, []byte("<no value>")) {
				t.Errorf("%s holds a placeholder", path)
			}
			want := file
			switch filepath.Ext(path) {
			case ".go":
				var err error
				if want, err = format.Source(file); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			case ".hcl":
				want = hclwrite.Format(file)
				if !regexp.MustCompile(`use += "my-stage/my-stage"`).Match(want) {
					t.Errorf("%s does not use the stage", path)
				}
			}
			if !bytes.Equal(file, want) {
				t.Errorf("%s is not formatted:\n%s", path, want)
			}
		}
		if _, ok := files[o.Main()]; !ok {
			t.Errorf("there is no file %s", o.Main())
		}
	})
}

// TestOwnLines limits what an author has to write: the lines of the stage's file that are neither
// blank nor a comment, without imports, which editors write.
func TestOwnLines(t *testing.T) {
	most := map[string]int{TemplateGo: 32, TemplatePython: 25}
	each(t, func(t *testing.T, o ProjectOptions, files map[string][]byte) {
		n := ownLines(o.Lang, string(files[o.Main()]))
		t.Logf("own lines of %s in %s: %d", o.Kind, o.Lang, n)
		if n == 0 || n > most[o.Lang] {
			t.Errorf("%d own lines, at most %d are promised", n, most[o.Lang])
		}
	})
}

func ownLines(lang, text string) (n int) {
	imports, doc := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "//"), strings.HasPrefix(line, "#"):
		case lang == TemplateGo && line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case lang == TemplateGo && (strings.HasPrefix(line, "package ") || strings.HasPrefix(line, "import ")):
		case lang == TemplatePython && (strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "from ")):
		case lang == TemplatePython && (doc || strings.HasPrefix(line, `"""`)): // of the module
			quotes := strings.Count(line, `"""`)
			doc = doc != (quotes == 1)
		default:
			n++
		}
	}
	return n
}

// TestCreateGo requires the Go version that racflow's own module needs.
func TestCreateGo(t *testing.T) {
	raw, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	own, err := modfile.ParseLax("go.mod", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for sdkAt, want := range map[string][2]string{"0.4.1": {"v0.4.1", ""}, "v0.5.0-rc.1": {"v0.5.0-rc.1", ""}, "v0.5.0+dirty": {"v0.5.0", ""}, "../../../..": {"v0.0.0", checkout}} {
		files, err := projectFiles(ProjectOptions{Kind: sdk.KindElect, Name: "mine", Lang: TemplateGo, SDK: sdkAt})
		if err != nil {
			t.Fatal(err)
		}
		got, err := modfile.Parse("go.mod", files["go.mod"], nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Go.Version != own.Go.Version {
			t.Errorf("go %s, racflow's own module has %s", got.Go.Version, own.Go.Version)
		}
		replaced := ""
		for _, r := range got.Replace {
			replaced = r.New.Path
		}
		if got.Require[0].Mod.Path != "github.com/racflow/racflow" || got.Require[0].Mod.Version != want[0] || replaced != want[1] {
			t.Errorf("--sdk %s: requires %v, replaced by %q; want %q", sdkAt, got.Require[0].Mod, replaced, want)
		}
	}
}

// TestRefused writes nothing if an option is wrong or the folder is not empty.
func TestRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := ProjectOptions{Kind: sdk.KindRerank, Name: "mine", Lang: TemplateGo, SDK: "v0.1.0"}
	with := func(change func(*ProjectOptions)) ProjectOptions {
		o := good
		change(&o)
		return o
	}
	for _, row := range []struct {
		name, dir string
		o         ProjectOptions
		want      string
	}{
		{"kind", "new", with(func(o *ProjectOptions) { o.Kind = "reranker" }), "chunk, enrich, embed, store, rerank, prompt, sample, elect"},
		{"no name", "new", with(func(o *ProjectOptions) { o.Name = "" }), "cannot be the name"},
		{"upper case", "new", with(func(o *ProjectOptions) { o.Name = "Mine" }), "lower-case letters"},
		{"path", "new", with(func(o *ProjectOptions) { o.Name = "../mine" }), "cannot be the name"},
		{"slash", "new", with(func(o *ProjectOptions) { o.Name = "mine/mine" }), "cannot be the name"},
		{"quote", "new", with(func(o *ProjectOptions) { o.Name = `mine"` }), "cannot be the name"},
		{"newline", "new", with(func(o *ProjectOptions) { o.Name = "mine\n" }), "cannot be the name"},
		{"long", "new", with(func(o *ProjectOptions) { o.Name = strings.Repeat("m", 41) }), "at most 40"},
		{"language", "new", with(func(o *ProjectOptions) { o.Lang = "rust" }), "go or python"},
		{"sdk of Python", "new", with(func(o *ProjectOptions) { o.Lang, o.SDK = TemplatePython, "../../../.." }), "--sdk of a plugin in Python is a version"},
		{"sdk", "new", with(func(o *ProjectOptions) { o.SDK = "latest" }), "neither a version"},
		{"no sdk", "new", with(func(o *ProjectOptions) { o.SDK = "" }), "neither a version"},
		{"folder", full, good, "not empty"},
		{"file", filepath.Join(full, "mine.txt"), good, "not a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := row.dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(t.TempDir(), dir)
			}
			if _, err := WriteProject(dir, row.o); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want an error with %q", err, row.want)
			}
			if there, err := os.ReadDir(dir); err == nil && dir != full {
				t.Errorf("%d files were written", len(there))
			}
		})
	}
	if dir := t.TempDir(); true { // an empty folder is fine
		if paths, err := WriteProject(dir, good); err != nil || len(paths) < 7 {
			t.Errorf("into an empty folder: %q, %v", paths, err)
		}
	}
}
