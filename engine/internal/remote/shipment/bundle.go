package shipment

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// This file bundles what a worker needs to open the pipeline file of a run: the file with all files
// that it reads, and the names of data that is too large or too secret to send.
//
// A worker keeps the paths of the caller's machine, since results may depend on them, and maps each
// to its own path (engine.Options.Away). It finds plugins by the lock file, models by the digests
// of their files, and secrets in its own environment. LacksError lists what it lacks, in sentences
// that say what to do.
//
// No value of the environment is sent, whether secret() or env() reads it. Values of the file's
// variables are sent unless they hold a secret; files that hold one, such as private keys, stay
// with the caller. So do the sources of knowledge and the input.

// Bundle is what a worker needs to open the pipeline file of a run. Its paths are absolute paths on
// the caller's machine, unless stated otherwise.
type Bundle struct {
	File             string              `json:"file"`          // the pipeline file, one of Files
	Dir              string              `json:"dir,omitempty"` // base of relative paths in VarFiles, Vars and Input
	Files            []BundledFile       `json:"files"`
	Pipeline         string              `json:"pipeline"`
	Input            string              `json:"input,omitempty"`   // replaces the file's input; as the user wrote it
	Columns          map[string]string   `json:"columns,omitempty"` // of the input
	KnowledgeColumns map[string]string   `json:"knowledgeColumns,omitempty"`
	Set              []pipeline.Override `json:"set,omitempty"`
	Vars             map[string]string   `json:"vars,omitempty"`
	VarFiles         []string            `json:"varFiles,omitempty"` // as the user wrote them; contained in Files; later ones win

	Environment []BundledVariable `json:"environment,omitempty"` // variables that the file reads
	Models      []BundledModel    `json:"models,omitempty"`
	Plugins     []BundledPlugin   `json:"plugins,omitempty"`
	Stores      []string          `json:"stores,omitempty"`  // folders in which stores keep collections; a worker's are below its state folder
	Sources     []BundledSource   `json:"sources,omitempty"` // of knowledge, to know whether they are files or folders
	Stays       []StayingFile     `json:"stays,omitempty"`
}

// BundledFile is the pipeline file, or a file that it reads.
type BundledFile struct {
	Path    string `json:"path"`
	Digest  string `json:"digest"` // SHA-256 of the content, hexadecimal
	Size    int64  `json:"size"`
	Content []byte `json:"content,omitempty"` // of a small file; a larger one is an object at the servers, named by its digest
}

// large reports whether the content is not in the bundle.
func (f BundledFile) large() bool { return f.Content == nil && f.Size > 0 }

// BundledVariable is an environment variable that the pipeline file reads. Its value is not sent.
type BundledVariable struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret,omitempty"` // read with secret(), or replaces a variable of the file that holds a secret
	Set    bool   `json:"set,omitempty"`    // the caller has it, so a worker needs it; false: the file has a default, or can do without
}

// BundledModel is a model folder that an argument names. A worker finds it by its content.
type BundledModel struct {
	Path   string `json:"path,omitempty"` // as in the argument; empty: the stage itself looks for the name
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the names and contents of its files
	Size   int64  `json:"size"`   // total bytes of its files
}

// BundledPlugin is a third-party program.
type BundledPlugin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Hash        string `json:"hash"`                  // on the caller's machine
	Development bool   `json:"development,omitempty"` // it is not locked
}

// BundledSource is a source of knowledge that is not a glob.
type BundledSource struct {
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
}

// StayingFile is a file or folder that is not sent: workers have it at the same path.
type StayingFile struct {
	Path string `json:"path"`
	Why  string `json:"why"` // a clause, such as "it holds a secret"
}

// LacksError lists what a machine lacks for taking part in a run.
type LacksError struct {
	Lacks []string // sentences that say what to do
}

func (e *LacksError) Error() string {
	return "this machine lacks what the run needs: " + strings.Join(e.Lacks, "; ")
}

// Digests returns the digests of the files that are objects at the servers.
func (b Bundle) Digests() (all []string) {
	for _, f := range b.Files {
		if f.large() {
			all = append(all, f.Digest)
		}
	}
	return all
}

// NewBundle collects what a worker needs to open the file of an open pipeline. The error names a
// secret in data that would have to be sent.
func NewBundle(p *engine.Pipeline) (Bundle, error) {
	o, f := p.Workspace().Options(), p.File()
	b := Bundle{Pipeline: p.Definition().Name, Input: o.Input, Columns: o.Columns, KnowledgeColumns: o.KnowledgeColumns, Set: o.Set, VarFiles: o.VarFiles}
	var err error
	if b.File, err = filepath.Abs(f.Path); err != nil {
		return b, err
	}
	if b.Dir, err = filepath.Abs(cmp.Or(o.Dir, ".")); err != nil {
		return b, err
	}
	c := &collector{bundle: &b, secrets: secretsOf(f, o), files: map[string]bool{}}
	if err := c.variables(f, o); err != nil {
		return b, err
	}
	if err := c.reads(f, o); err != nil {
		return b, err
	}
	if err := c.stages(f, p.Definition()); err != nil {
		return b, err
	}
	slices.SortFunc(b.Files, func(x, y BundledFile) int { return strings.Compare(x.Path, y.Path) }) // so that equal files give equal bundles
	slices.SortFunc(b.Environment, func(x, y BundledVariable) int { return strings.Compare(x.Name, y.Name) })
	return b, nil
}

// Put uploads the files that are too large for the definition of a run.
func (b Bundle) Put(ctx context.Context, conn ObjectStore) error {
	var files []engine.ShipFile
	var digests []string
	for _, f := range b.Files {
		if f.large() {
			files, digests = append(files, engine.ShipFile{Name: f.Path, Path: f.Path}), append(digests, f.Digest)
		}
	}
	shipped, err := PutShipped(ctx, conn, files)
	if err != nil {
		return err
	}
	for i, s := range shipped {
		if s.Digest != digests[i] {
			return fmt.Errorf("%s has changed since the run began: begin it anew", s.Name)
		}
	}
	return nil
}

// collector collects a bundle.
type collector struct {
	bundle  *Bundle
	secrets secrets
	files   map[string]bool // by path: sent, or staying
	inside  int64           // bytes of the contents in the bundle
}

// variables adds the values given for the file's variables, and the environment variables that it reads.
func (c *collector) variables(f *pipeline.File, o engine.Options) error {
	b := c.bundle
	for _, e := range f.Environment {
		c.environment(BundledVariable{e.Name, e.Secret, e.Set && !e.Off})
	}
	given := map[string]string{}
	for name, value := range o.Vars {
		given[name] = value
	}
	for _, v := range f.Variables {
		if name := "RACFLOW_VAR_" + v.Name; v.From == name {
			given[v.Name], _ = lookup(o)(name)
		}
		value, is := given[v.Name]
		if is && (v.Value == redact.Placeholder && v.From != "default" || c.secrets.in(value)) {
			delete(given, v.Name)
			c.environment(BundledVariable{"RACFLOW_VAR_" + v.Name, true, true})
		}
	}
	for _, s := range b.Set {
		if c.secrets.in(s.Value) {
			return fmt.Errorf("the value that was given for %s is a secret, which never goes to the servers: write secret(\"NAME\"), and set NAME in the environment of every machine", s.Target)
		}
	}
	if len(given) > 0 {
		b.Vars = given
	}
	return nil
}

func (c *collector) environment(e BundledVariable) {
	for i, have := range c.bundle.Environment {
		if have.Name == e.Name { // read both as a secret and not, or also by a disabled stage
			c.bundle.Environment[i].Secret, c.bundle.Environment[i].Set = have.Secret || e.Secret, have.Set || e.Set
			return
		}
	}
	c.bundle.Environment = append(c.bundle.Environment, e)
}

func lookup(o engine.Options) func(string) (string, bool) {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.LookupEnv
}

// stagesOf yields all stages of a file, including those of other pipelines and disabled ones,
// because a worker checks the whole file, too.
func stagesOf(f *pipeline.File) iter.Seq[*pipeline.Stage] {
	return func(yield func(*pipeline.Stage) bool) {
		for _, k := range f.Knowledge {
			for _, s := range slices.Concat([]*pipeline.Stage{k.Chunk, k.Embed, k.Store}, k.Enrich) {
				if s != nil && !yield(s) {
					return
				}
			}
		}
		for _, p := range f.Pipelines {
			for _, s := range p.Stages {
				if !yield(s) {
					return
				}
				for _, fallback := range s.Fallbacks {
					if !yield(fallback.Stage) {
						return
					}
				}
			}
		}
	}
}

// started returns the stages that a worker starts: those of the pipeline, and embedders.
func started(p *pipeline.Pipeline) (all []*pipeline.Stage) {
	for _, k := range p.Knowledge() {
		all = append(all, k.Embed)
	}
	for _, s := range p.Stages {
		if s.Enabled {
			all = append(all, s)
			for _, fallback := range s.Fallbacks {
				all = append(all, fallback.Stage)
			}
		}
	}
	return all
}

// stages adds the files that arguments name, models, the folders of stores, and plugins.
func (c *collector) stages(f *pipeline.File, p *pipeline.Pipeline) error {
	needed := started(p)
	for _, k := range f.Knowledge {
		for _, path := range engine.StorePaths(k.Store) {
			if k.Attached() {
				c.stay(path, fmt.Sprintf("another program makes the collection of knowledge %q in it", k.Name))
			} else {
				c.bundle.Stores = append(c.bundle.Stores, path)
			}
		}
	}
	for s := range stagesOf(f) {
		for _, path := range s.Paths() {
			info, err := os.Stat(path)
			switch {
			case s.Kind == sdk.KindStore && (err != nil || info.IsDir()):
				err = nil
			case err == nil && info.Mode().IsRegular():
				err = c.file(path)
			case slices.Contains(needed, s):
				err = c.model(path)
			default:
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%s.%s: %w", s.Block, s.Name, err)
			}
		}
		if err := c.plugin(s); err != nil {
			return err
		}
	}
	for _, s := range needed {
		if err := c.preset(s); err != nil {
			return err
		}
	}
	slices.Sort(c.bundle.Stores)
	c.bundle.Stores = slices.Compact(c.bundle.Stores)
	return nil
}

// model adds the model folder that an argument names, directly or by a model's name.
func (c *collector) model(path string) error {
	if dir, err := sdk.FindModel(sdk.Path(path)); err == nil {
		return c.modelIn(dir, path, filepath.Base(path))
	}
	return nil // the stage reports it, or creates it
}

func (c *collector) modelIn(dir, path, name string) error {
	if slices.ContainsFunc(c.bundle.Models, func(m BundledModel) bool { return m.Path == path && m.Name == name }) {
		return nil
	}
	size, err := model.Size(dir)
	if err != nil {
		return err
	}
	digest, err := model.Digest(dir)
	if err == nil {
		c.bundle.Models = append(c.bundle.Models, BundledModel{Path: path, Name: name, Digest: digest, Size: size})
	}
	return err
}

// preset adds the default model of a built-in stage: the one in racflow's list with the stage's
// name, unless an argument names another.
func (c *collector) preset(s *pipeline.Stage) error {
	takes := slices.ContainsFunc(s.Info.Arguments, func(a sdk.Argument) bool { return a.Name == "model" && a.Type == sdk.TypePath })
	listed := slices.ContainsFunc(model.Known(), func(m model.Model) bool { return m.Name == s.Use })
	if s.Program != nil || !takes || !listed || s.Config.Model() != "" {
		return nil
	}
	dir, err := sdk.ModelDir(s.Use)
	if err != nil {
		return err
	}
	return c.modelIn(dir, "", s.Use)
}

func (c *collector) plugin(s *pipeline.Stage) error {
	from := s.Program
	if from == nil || slices.ContainsFunc(c.bundle.Plugins, func(p BundledPlugin) bool { return p.Name == from.Name }) {
		return nil
	}
	hash, err := from.Check()
	if err == nil {
		c.bundle.Plugins = append(c.bundle.Plugins, BundledPlugin{Name: from.Name, Version: from.Version, Hash: hash, Development: from.Development()})
	}
	return err
}
