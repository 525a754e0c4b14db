package workspace

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/journal"
)

// resume finds the run of Options.Resume and gives the stages the prices and the chosen values with
// which it began. It is called before stages start.
func (p *Pipeline) resume() (journal.Manifest, error) {
	file, err := filepath.Abs(p.file.Path)
	if err != nil {
		return journal.Manifest{}, err
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
	p.spendable, p.spent = last.Spend, last.Calibrating
	for i := range last.Stages {
		if !last.Mine { // a value can be an address or a path
			last.Stages[i].Resolved = nil
		}
	}
	p.recall(last.Stages)
	return last, nil
}

// recall restores what a run began with: what its stages had learned, the values that they chose, and
// prices.
func (p *Pipeline) recall(began []journal.ManifestStage) {
	stages := p.stages()
	p.resolved, p.began = map[*pipeline.Stage]map[string]any{}, map[string]string{}
	for _, kept := range began {
		p.began[kept.Stage] = kept.Learnt
		s := stages[kept.Stage]
		if s == nil || s.Use != kept.Use {
			continue // this part of the file has changed
		}
		if kept.Learnt == "" { // a stage that learned chooses the same values again; if given the values, it could not learn
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

// stages returns the pipeline's stages that have a process, by their names in the journal.
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

// configOf returns the config that a stage's process opens with.
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
		if values[name] == nil { // otherwise the file sets it
			values[name] = value
		}
	}
	return json.Marshal(values)
}
