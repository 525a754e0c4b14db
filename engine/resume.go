package engine

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/pipeline"
)

// resume finds the run of Options.Resume and gives the stages what it began with:
// values that they chose themselves when they started, and prices. Stages start
// afterwards.
func (p *Pipeline) resume() (manifest.Manifest, error) {
	file, err := filepath.Abs(p.file.Path)
	if err != nil {
		return manifest.Manifest{}, err
	}
	runs, id := p.workspace.Runs(), p.workspace.options.Resume
	last, left := runs.Newest(file, p.chosen.Name)
	switch {
	case id == Newest && !left:
		return last, runs.NothingLeft(file, p.chosen.Name)
	case id != Newest:
		if last, err = runs.Manifest(id); err != nil {
			return last, err
		}
		if last.File != file || last.Pipeline != p.chosen.Name {
			return last, fmt.Errorf("run %s is of pipeline %q in %s", last.ID, last.Pipeline, last.File)
		}
	}
	p.spendable = last.Spend
	p.recall(last.Stages)
	return last, nil
}

// recall gives the stages what those of a run began with.
func (p *Pipeline) recall(began []manifest.Stage) {
	stages := p.stages()
	p.resolved = map[*pipeline.Stage]map[string]any{}
	for _, kept := range began {
		s := stages[kept.Stage]
		if s == nil || s.Use != kept.Use {
			continue // the part of the file differs
		}
		if kept.Learnt == "" { // else it resolves the same from that, and could not learn with it given
			p.resolved[s] = kept.Resolved
		}
		if kept.Price == nil {
			continue
		}
		price := pipeline.Price(*kept.Price)
		if s.Price == nil || *s.Price != price {
			p.workspace.log.Warn("the price in the file is another than when the run began, which counts to its end; a new run counts by the file's", "stage", kept.Stage)
		}
		s.Price, s.PriceFrom = &price, "the run's beginning"
	}
}

// stages are those of the pipeline that have a process, by the names that the journal
// has for them.
func (p *Pipeline) stages() map[string]*pipeline.Stage {
	all := map[string]*pipeline.Stage{}
	for _, s := range p.chosen.Stages {
		name := s.Block + "." + s.Name
		all[name] = s
		for _, f := range s.Fallbacks {
			all[name+", fallback."+f.Name] = f.Stage
		}
	}
	return all
}

// configOf is the config that a stage's process opens with.
func (p *Pipeline) configOf(s *pipeline.Stage) ([]byte, error) {
	resolved := p.resolved[s]
	if len(resolved) == 0 {
		return s.Config.Open, nil
	}
	values := map[string]any{}
	if len(s.Config.Open) > 0 {
		if err := json.Unmarshal(s.Config.Open, &values); err != nil {
			return nil, fmt.Errorf("the config of %s.%s: %w", s.Block, s.Name, err)
		}
	}
	for name, value := range resolved {
		if values[name] == nil { // else the file gives it
			values[name] = value
		}
	}
	return json.Marshal(values)
}
