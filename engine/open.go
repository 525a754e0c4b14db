package engine

import (
	"context"
	"sync"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
)

// Pipeline is a checked file with one of its pipelines. Its stages start when they
// are first needed, and run until Close. Its methods may be called by several
// goroutines at once.
type Pipeline struct {
	workspace *Workspace
	file      *pipeline.File
	chosen    *pipeline.Pipeline // nil: work is on the file's knowledge alone

	mu    sync.Mutex
	ready *run.Run // nil: not started
}

// Open loads and checks a pipeline file. It starts no stage. What is done with the
// pipeline ends with ctx; Close it in any case. A mistake in the file is a
// *DiagnosticsError, one of the options that does not suit it an *OptionError.
func Open(ctx context.Context, path string, o Options) (*Pipeline, error) {
	w, err := NewWorkspace(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := w.Open(path)
	if err != nil {
		w.Close()
		return nil, err
	}
	return p, nil
}

// Open is the function of that name in a workspace that is there already.
func (w *Workspace) Open(path string) (*Pipeline, error) {
	file, err := w.Load(path)
	if err != nil {
		return nil, err
	}
	chosen, err := w.Choose(file)
	if err != nil {
		return nil, err
	}
	if err := w.options.Services.check(chosen); err != nil {
		return nil, err
	}
	return &Pipeline{workspace: w, file: file, chosen: chosen}, nil
}

// Close ends all processes of the workspace.
func (p *Pipeline) Close() { p.workspace.Close() }

// Workspace is what the pipeline was opened in.
func (p *Pipeline) Workspace() *Workspace { return p.workspace }

// File is what was loaded.
func (p *Pipeline) File() *pipeline.File { return p.file }

// Definition is the pipeline block.
func (p *Pipeline) Definition() *pipeline.Pipeline { return p.chosen }

// Start brings the knowledge up to date and starts the stages, unless that was done
// before. What needs them calls it itself.
func (p *Pipeline) Start(ctx context.Context) (*run.Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		return p.ready, nil
	}
	o := p.workspace.options
	r, err := run.Open(ctx, p.chosen, run.Options{
		Launch: p.launch, Stdin: o.Stdin, Again: o.Again, Lists: o.Lists, Strict: o.Strict, Refuses: p.refuses,
		Knowledge: o.Events.Knowledge, Building: o.Events.Building, Waiting: o.Events.Locked,
	})
	if err != nil {
		return nil, p.explain(err)
	}
	p.ready = r
	return r, nil
}

// Again holds elections of the run again, by the pipeline with arguments set in
// place of those of Options. The run needs Options.Again.
func (p *Pipeline) Again(ctx context.Context, set []pipeline.Override) (*run.Again, error) {
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	file, diags, err := p.workspace.read(p.file.Path, p.chosen.Input.Path, set)
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, file.Sources}
	}
	again, err := p.workspace.Choose(file)
	if err != nil {
		return nil, err
	}
	return r.Again(ctx, again, p.launchHere)
}
