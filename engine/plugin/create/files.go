package create

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/template"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

//go:embed all:templates
var templates embed.FS

// data are the folders of data that a kind's pipeline file reads.
var data = map[sdk.Kind][]string{
	sdk.KindChunk:  {"docs"},
	sdk.KindEnrich: {"docs"},
	sdk.KindEmbed:  {"rows"},
	sdk.KindStore:  {"rows"},
	sdk.KindRerank: {"rows"},
	sdk.KindPrompt: {"rows", "prompt"},
	sdk.KindSample: {"rows"},
	sdk.KindElect:  {"rows"},
}

// File is one of a project.
type File struct {
	Content []byte
	Mode    fs.FileMode
}

// Files are the files of a project by their paths, with slashes.
func Files(o Options) (map[string]File, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	v, err := o.values()
	if err != nil {
		return nil, err
	}
	from := map[string]string{ // templates by the paths of files
		v.Main:                          o.Lang + "/" + v.Kind + ".tmpl",
		"pipeline.hcl":                  "pipeline/" + v.Kind + ".hcl",
		"README.md":                     "common/README.md.tmpl",
		".gitignore":                    o.Lang + "/gitignore.tmpl",
		".github/workflows/release.yml": o.Lang + "/release.yml.tmpl",
	}
	if o.Lang == Go {
		from["go.mod"], from["main_test.go"] = "go/go.mod.tmpl", "go/main_test.go.tmpl"
	} else {
		from["requirements.txt"], from["test_stage.py"] = "python/requirements.txt.tmpl", "python/test_stage.py.tmpl"
		if o.Kind == sdk.KindStore {
			from["verify.json"], from["pipeline.hcl"] = "python/verify.json.tmpl", "python/store.hcl"
		}
	}
	for _, folder := range data[o.Kind] {
		root := "templates/data/" + folder
		err := fs.WalkDir(templates, root, func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				from[strings.TrimPrefix(name, root+"/")] = strings.TrimPrefix(name, "templates/")
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	files := map[string]File{}
	for path, template := range from {
		content, err := render(template, v)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		files[path] = File{content, 0o644}
	}
	if o.Lang == Python { // it is executed as it is
		files[o.Main()] = File{files[o.Main()].Content, 0o755}
	}
	return files, nil
}

// values are what templates may name.
type values struct {
	Kind, Name, Lang string
	Program          string // racflow-plugin-NAME
	Main             string // path of the stage's own code
	Go               string // version of the language
	Version, Replace string // of racflow's module
}

// Main is the path, with slashes, of the file that holds the stage.
func (o Options) Main() string {
	if o.Lang == Python {
		return program.Prefix + o.Name + "/" + program.Prefix + o.Name
	}
	return "main.go"
}

// versions are those of modules. What a build with changes adds, +dirty, is none of a module.
var versions = regexp.MustCompile(`^v?(\d+\.\d+\.\d+[-.0-9A-Za-z]*)(\+[-.0-9A-Za-z]*)?$`)

func (o Options) values() (values, error) {
	v := values{Kind: string(o.Kind), Name: o.Name, Lang: o.Lang, Program: program.Prefix + o.Name, Main: o.Main(), Go: "1.26.0"}
	if version := versions.FindStringSubmatch(o.SDK); version != nil {
		v.Version = "v" + version[1]
		return v, nil
	}
	if o.Lang == Python {
		return v, errors.New("--sdk of a plugin in Python is a version: racflow brings the package itself")
	}
	folder, err := filepath.Abs(o.SDK)
	if err != nil {
		return v, err
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil || o.SDK == "" {
		return v, fmt.Errorf("--sdk %s is neither a version, such as v0.1.0, nor the folder of a checkout of racflow", o.SDK)
	}
	v.Version, v.Replace = "v0.0.0", folder
	if strings.ContainsAny(folder, " \t") || runtime.GOOS == "windows" {
		v.Replace = strconv.Quote(folder)
	}
	return v, nil
}

func render(from string, v values) ([]byte, error) {
	text, err := templates.ReadFile("templates/" + from)
	if err != nil {
		return nil, err
	}
	t, err := template.New(from).Delims("<<", ">>").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, v)
	return out.Bytes(), err
}
