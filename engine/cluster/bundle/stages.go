package bundle

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/model"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// stagesOf yields all stages of a file, also those that another pipeline has or that are off: a worker
// checks the whole file, too.
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

// started are the stages that a worker starts: those of the pipeline, and embedders.
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
				c.stay(path, fmt.Sprintf("somebody else makes the collection of knowledge %q in it", k.Name))
			} else {
				c.bundle.Stores = append(c.bundle.Stores, path)
			}
		}
	}
	for s := range stagesOf(f) {
		for _, path := range engine.PathsOf(s) {
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

// model adds a folder that an argument names, or the model on this machine that it stands for.
func (c *collector) model(path string) error {
	if dir, err := sdk.FindModel(sdk.Path(path)); err == nil {
		return c.modelIn(dir, path, filepath.Base(path))
	}
	return nil // the stage says so, or makes it
}

func (c *collector) modelIn(dir, path, name string) error {
	if slices.ContainsFunc(c.bundle.Models, func(m Model) bool { return m.Path == path && m.Name == name }) {
		return nil
	}
	size, err := model.Size(dir)
	if err != nil {
		return err
	}
	digest, err := model.Digest(dir)
	if err == nil {
		c.bundle.Models = append(c.bundle.Models, Model{Path: path, Name: name, Digest: digest, Size: size})
	}
	return err
}

// preset adds the model of a built-in stage that is called as a model of racflow's list, and works with that where no other is
// named.
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
	if from == nil || slices.ContainsFunc(c.bundle.Plugins, func(p Plugin) bool { return p.Name == from.Name }) {
		return nil
	}
	hash, err := from.Check()
	if err == nil {
		c.bundle.Plugins = append(c.bundle.Plugins, Plugin{Name: from.Name, Version: from.Version, Hash: hash, Development: from.Development()})
	}
	return err
}
