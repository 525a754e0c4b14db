package engine

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/journal"
)

// Runs are those that are kept in the state folder.
func (w *Workspace) Runs() journal.Runs { return journal.Of(w.state) }

// Manifest says what a run of the pipeline depends on. It starts the stages.
func (p *Pipeline) Manifest(ctx context.Context) (journal.Manifest, error) {
	m := journal.Manifest{Version: Version(), Limit: p.workspace.options.Limit}
	m.Define(p.file, p.chosen)
	r, err := p.Start(ctx)
	if err != nil {
		return m, err
	}
	if m.File, err = filepath.Abs(p.file.Path); err != nil {
		return m, err
	}
	path, err := filepath.Abs(p.InputPath())
	if err != nil {
		return m, err
	}
	if m.Input, err = journal.NewFile(path); err != nil {
		return m, err
	}
	for _, g := range r.Generations() {
		m.Knowledge = append(m.Knowledge, journal.Knowledge(g))
	}
	for _, id := range r.Identities() {
		stage := journal.Stage{Stage: id.Stage, Use: id.Use, Plugin: "racflow", Version: Version(), Fingerprint: id.Fingerprint}
		if command := p.workspace.catalog.Command(id.Use); command != nil {
			stage.Plugin, _, _ = strings.Cut(id.Use, "/")
			known, _ := p.workspace.host.Known(command)
			stage.Version = known.Version
			program, err := journal.NewFile(command[0])
			if err != nil {
				return m, err
			}
			stage.Program = &program
		}
		m.Stages = append(m.Stages, stage)
	}
	return m, nil
}
