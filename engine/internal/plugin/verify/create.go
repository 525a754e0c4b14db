package verify

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// This file writes the project of a new plugin: a small working stage of one of the eight kinds, in
// Go or Python. The project includes a test, data, a pipeline file that uses the stage, and a
// workflow that releases it. The templates are in the folder templates.
//
// It builds and starts nothing, and uses no network: build.go builds, and the author starts the
// plugin.

// The languages of the templates.
const (
	TemplateGo     = "go"
	TemplatePython = "python"
)

// ProjectOptions say which project to write.
type ProjectOptions struct {
	Kind sdk.Kind
	Name string // of the plugin and of its stage
	Lang string // TemplateGo or TemplatePython
	SDK  string // version of racflow's module; for Go also the folder of a checkout of the module
}

// projectNames matches valid names of plugins: they become a program's name, and a key of a file.
var projectNames = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Check returns what is wrong with the options.
func (o ProjectOptions) Check() error {
	switch {
	case !slices.Contains(catalog.Kinds, o.Kind):
		return fmt.Errorf("there is no kind of stage %q; choose one of %s", o.Kind, StageKinds())
	case !projectNames.MatchString(o.Name) || len(o.Name) > 40:
		return fmt.Errorf("%q cannot be the name of a plugin: take at most 40 lower-case letters, digits and hyphens, a letter first, such as my-%s", o.Name, o.Kind)
	case o.Lang != TemplateGo && o.Lang != TemplatePython:
		return fmt.Errorf("there are no templates in %q; choose %s or %s", o.Lang, TemplateGo, TemplatePython)
	}
	return nil
}

// StageKinds lists the kinds of stages, for people.
func StageKinds() string {
	all := make([]string, len(catalog.Kinds))
	for i, k := range catalog.Kinds {
		all[i] = string(k)
	}
	return strings.Join(all, ", ")
}

// WriteProject writes a project into a folder, which must be empty or new, and returns the paths of
// its files, sorted.
func WriteProject(dir string, o ProjectOptions) ([]string, error) {
	files, err := projectFiles(o)
	if err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("the folder %s is there already, and it is not empty: choose another name, or another place", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for path, content := range files {
		mode := fs.FileMode(0o644)
		if o.Lang == TemplatePython && path == o.Main() { // the program itself
			mode = 0o755
		}
		paths = append(paths, path)
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, content, mode); err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}

//go:embed all:templates
var templates embed.FS

// data lists the folders of data that a kind's pipeline file reads.
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

// projectFiles returns the files of a project by their paths, with slashes.
func projectFiles(o ProjectOptions) (map[string][]byte, error) {
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
	if o.Lang == TemplateGo {
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
	files := map[string][]byte{}
	for path, template := range from {
		if files[path], err = render(template, v); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return files, nil
}

// values are the variables of templates.
type values struct {
	Kind, Name, Lang string
	Program          string // racflow-plugin-NAME
	Main             string // path of the stage's source file
	Go               string // version of Go
	Version, Replace string // of racflow's module
}

// Main returns the path, with slashes, of the file that contains the stage.
func (o ProjectOptions) Main() string {
	if o.Lang == TemplatePython {
		return program.Prefix + o.Name + "/" + program.Prefix + o.Name
	}
	return "main.go"
}

// versions matches versions of modules, without the suffix +dirty of a modified build.
var versions = regexp.MustCompile(`^v?(\d+\.\d+\.\d+[-.0-9A-Za-z]*)(\+[-.0-9A-Za-z]*)?$`)

func (o ProjectOptions) values() (values, error) {
	v := values{Kind: string(o.Kind), Name: o.Name, Lang: o.Lang, Program: program.Prefix + o.Name, Main: o.Main(), Go: "1.26.0"}
	if version := versions.FindStringSubmatch(o.SDK); version != nil {
		v.Version = "v" + version[1]
		return v, nil
	}
	if o.Lang == TemplatePython {
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
	if strings.ContainsAny(folder, " \t") {
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
