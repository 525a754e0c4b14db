package bundle

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/redact"
)

// Of takes together what a worker needs to open the file of an open pipeline. An error says which
// secret stands where it would travel.
func Of(p *engine.Pipeline) (Bundle, error) {
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
	slices.SortFunc(b.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) }) // one file has one bundle
	slices.SortFunc(b.Environment, func(x, y Environment) int { return strings.Compare(x.Name, y.Name) })
	return b, nil
}

// Put brings the files to the servers that are too large for the definition of a run.
func (b Bundle) Put(ctx context.Context, conn ship.Objects) error {
	var files []engine.ShipFile
	var digests []string
	for _, f := range b.Files {
		if f.large() {
			files, digests = append(files, engine.ShipFile{Name: f.Path, Path: f.Path}), append(digests, f.Digest)
		}
	}
	shipped, err := ship.Put(ctx, conn, files)
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

// collector gathers a bundle.
type collector struct {
	bundle  *Bundle
	secrets secrets
	files   map[string]bool // by path: travels, or stays
	inside  int64           // bytes of the contents in the bundle
}

// variables adds what was given for the file's variables, and what it reads of the environment.
func (c *collector) variables(f *pipeline.File, o engine.Options) error {
	b := c.bundle
	for _, e := range f.Environment {
		c.environment(Environment{e.Name, e.Secret, e.Set && !e.Off})
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
			c.environment(Environment{"RACFLOW_VAR_" + v.Name, true, true})
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

func (c *collector) environment(e Environment) {
	for i, have := range c.bundle.Environment {
		if have.Name == e.Name { // read both as a secret and not, or by a stage that is off, too
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
