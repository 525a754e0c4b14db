package scaffold

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Examples names the pipeline files that racflow comes with.
func Examples(pipelines fs.FS) []string {
	files, _ := fs.Glob(pipelines, "*.hcl") // the pattern is well formed
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".hcl"))
	}
	return names
}

// named finds the paths of examples and templates in a pipeline file.
var (
	exampleData = regexp.MustCompile(`"\.\./examples/([^"]+)"`)
	templates   = regexp.MustCompile(`"([^"/]+\.tmpl)"`)
)

// Example returns the files of an example by their paths, which lie to each other as in a
// checkout: the pipeline, its templates and its data. Where minilm is not there, the
// pipeline's default embedder is hashing.
func Example(name string, o Options, examples fs.FS) (map[string][]byte, error) {
	all := Examples(o.Pipelines)
	if !slices.Contains(all, name) {
		return nil, fmt.Errorf("unknown example %q: use one of %s", name, strings.Join(all, ", "))
	}
	text, err := fs.ReadFile(o.Pipelines, name+".hcl")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, found := range templates.FindAllSubmatch(text, -1) {
		if files["pipelines/"+string(found[1])], err = fs.ReadFile(o.Pipelines, string(found[1])); err != nil {
			return nil, err
		}
	}
	for _, found := range exampleData.FindAllSubmatch(text, -1) {
		err := fs.WalkDir(examples, string(found[1]), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files[path.Join("examples", file)], err = fs.ReadFile(examples, file)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !o.MiniLM {
		if text, err = withHashing(text, name); err != nil {
			return nil, err
		}
	}
	files["pipelines/"+name+".hcl"] = text
	return files, nil
}

// withHashing is a pipeline file with another default embedder, where it has one.
func withHashing(text []byte, name string) ([]byte, error) {
	t, err := parse(text, name+".hcl")
	if err != nil {
		return nil, err
	}
	t.set("default", "hashing", "variable embedder")
	if t.err != nil {
		return text, nil //nolint:nilerr // it embeds nothing
	}
	return t.bytes()
}
