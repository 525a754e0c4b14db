package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Leaver is a Remote whose run continues after this process has left it.
type Leaver interface {
	Remote
	run.Sender
	// Leave is called when all items of the input have been handed over. It returns an error if the
	// run would not continue.
	Leave(ctx context.Context, items int) error
}

// Detached describes what Detach has handed over.
type Detached struct {
	Items int    // items of the input
	Run   string // the ID of its journal here, with the answers so far; empty: there is none
}

// Detach hands the input over to Options.Remote, which has to be a Leaver, and does not wait for the
// results: Workspace.Attach takes them, wherever it is called. An error says that the run has not
// been left: it has to be resumed, or begun again.
func (p *Pipeline) Detach(ctx context.Context) (*Detached, error) {
	o := p.workspace.options
	to, last, err := p.leavable()
	if err != nil {
		return nil, err
	}
	rows, err := p.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read: no data can be lost
	p.glance(ctx)
	r, err := p.start(ctx, true)
	if err != nil {
		return nil, err
	}
	w := &work{Pipeline: p, run: r, rows: rows, out: &Outcome{Labels: r.Labels()}}
	begun, release, err := w.open(ctx, last)
	if err != nil {
		return nil, err
	}
	defer release()
	if o.Events.Begun != nil {
		o.Events.Begun(begun)
	}
	left := &Detached{Run: begun.Run}
	if err = p.begin(ctx, w.records, begun.Resumed, false, w.out.Labels); err == nil {
		if left.Items, err = r.Send(ctx, rows.Next, w.kept, to); err == nil {
			err = to.Leave(ctx, left.Items)
		}
	}
	if w.records != nil {
		err = errors.Join(err, w.records.Close(journal.NewTotals(outcome.Totals{}, cmp.Or(err, errDetached))))
	}
	for _, note := range rows.Notes() {
		p.advise("%s", note)
	}
	if err != nil {
		return nil, errors.Join(err, to.End(ctx, err))
	}
	return left, nil
}

// leavable rejects a run that cannot be left to other machines, and finds the run to resume, if any.
func (p *Pipeline) leavable() (to Leaver, last journal.Manifest, err error) {
	o := p.workspace.options
	to, ok := o.Remote.(Leaver)
	switch {
	case !ok:
		return nil, last, optionError("Remote", "%[1]s cannot be left")
	case o.Spend.IsSet():
		return nil, last, optionError("Spend", "%[1]s is decided about from answers to all items: a run that spends only so much cannot be left")
	case o.Again != "":
		return nil, last, optionError("Again", "%[1]s takes answers as items are searched for here: a run that does so cannot be left")
	case o.Resume != "" && !p.rereadable():
		return nil, last, optionError("Input", "standard input cannot be read again, so no run over it can be resumed: keep the items in a file and name it with %[1]s")
	}
	if o.Resume != "" {
		if last, err = p.resume(); err != nil {
			return nil, last, err
		}
		if last.Spend.IsSet() || last.Again != "" {
			return nil, last, fmt.Errorf("run %s began with a limit on what is spent where it counts, or takes answers of another run: it cannot be left", last.ID)
		}
	}
	return to, last, nil
}

var errDetached = errors.New("its caller has left it to other machines")

// resume finds the run of Options.Resume and gives the stages what it began with: values that they
// chose when they started, and prices. It is called before stages start.
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

// recall gives the stages what a run's stages began with.
func (p *Pipeline) recall(began []journal.ManifestStage) {
	stages := p.stages()
	p.resolved, p.began = map[*pipeline.Stage]map[string]any{}, map[string]string{}
	for _, kept := range began {
		p.began[kept.Stage] = kept.Learnt
		s := stages[kept.Stage]
		if s == nil || s.Use != kept.Use {
			continue // another part of the file now
		}
		if kept.Learnt == "" { // else the stage resolves the same from what it learned, and could not learn with these values given
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
		if values[name] == nil { // else the file sets it
			values[name] = value
		}
	}
	return json.Marshal(values)
}
