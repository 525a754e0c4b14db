package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/run/stage"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// Workspace is what files are loaded and stages started with: a state folder,
// plugins, and what calls of services share.
type Workspace struct {
	ctx     context.Context // ends all work
	options Options
	log     *slog.Logger
	state   string // absolute: plugins are given folders below it
	host    *host.Host
	catalog *catalog.Catalog

	pending *retry.Handles // of results that come later
	waits   *terminal.WaitReporter
	unwatch func() // the workspace is closed

	mu      sync.Mutex
	control *governor.Governor // nil: no stage calls a service
	before  governor.Snapshot  // what had been called when this workspace began to

	shipments []string // folders of files that are taken to other machines
}

// NewWorkspace makes ready to load files and start processes. It does neither.
// What is done with it ends with ctx.
func NewWorkspace(ctx context.Context, o Options) (*Workspace, error) {
	if o.State == "" {
		o.State = DefaultState
	}
	if o.Services == nil {
		o.Services = &Services{}
	}
	w := &Workspace{ctx: ctx, options: o, log: o.Log}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if o.Builtin.stages == nil {
		return nil, errors.New("engine.Options.Builtin is not set: begin main with stages := engine.Serve(plugins.All()), and give that")
	}
	var err error
	if w.state, err = filepath.Abs(o.State); err != nil {
		return nil, err
	}
	if filepath.Base(w.state) == DefaultState { // nobody else's: another may be a folder that its owner shares
		if err := disk.TightenFolder(w.state); err != nil {
			return nil, err
		}
	}
	w.pending = retry.OpenHandles(filepath.Join(w.state, "pending"), o.Events.waits)
	if w.host, err = host.New(host.Options{StateDir: w.state, Log: w.log, Debugging: o.Events.Debugging, Restarted: outcome.ObserverOr(o.Observe).Restarted}); err != nil {
		return nil, err
	}
	if w.catalog, err = catalog.New(ctx, w.host, o.Builtin.stages, catalog.Folders(o.Plugins)); err != nil {
		w.host.Close()
		return nil, err
	}
	waits, leave := o.Services.reporter(o.Events.Waiting)
	forget := waits.Watch(w.host.Waits)
	w.waits, w.unwatch = waits, func() { forget(); leave() }
	return w, nil
}

// Catalog knows the stages that files can use.
func (w *Workspace) Catalog() *catalog.Catalog { return w.catalog }

// Options are those that the workspace was made with.
func (w *Workspace) Options() Options { return w.options }

// State is the absolute path of the state folder.
func (w *Workspace) State() string { return w.state }

// Log gets what the workspace logs; it is never nil.
func (w *Workspace) Log() *slog.Logger { return w.log }

// fitted is the folder of what stages have learnt from knowledge.
func (w *Workspace) fitted() string { return filepath.Join(w.state, "fitted") }

// samples is the folder of samples of collections that somebody else makes.
func (w *Workspace) samples() string { return filepath.Join(w.state, "attached") }

// Close ends all processes.
func (w *Workspace) Close() {
	w.unwatch()
	w.host.Close()
	w.mu.Lock()
	for _, dir := range w.shipments {
		_ = os.RemoveAll(dir) // a later shipment does it
	}
	w.mu.Unlock()
	if spent, any := w.Spent(); any && w.options.Events.Spent != nil {
		w.options.Events.Spent(spent)
	}
}

// Failed is why a process of the workspace is not started any more; nil: there is none. What needs it
// fails until the file is opened anew.
func (w *Workspace) Failed() error { return w.host.Failed() }

// Again lets stages call their services once more that were stopped because a service stayed down
// or denied their calls. It reports whether there were any: a pipeline that is opened anew with the
// same Services then asks them again.
func (w *Workspace) Again() bool {
	w.mu.Lock()
	control := w.control
	w.mu.Unlock()
	return control != nil && control.Again()
}

// Spent is what the calls of services came to so far; false: no stage calls one.
func (w *Workspace) Spent() (governor.Snapshot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.control == nil {
		return governor.Snapshot{}, false
	}
	return w.control.Snapshot().Since(w.before), true
}

// Read reads and checks a pipeline file. The file is never nil where the error is.
func (w *Workspace) Read(path string) (*pipeline.File, hcl.Diagnostics, error) {
	return w.read(path, w.options.Input, w.options.Set)
}

func (w *Workspace) read(path, input string, set []pipeline.Override) (*pipeline.File, hcl.Diagnostics, error) {
	o, err := w.LoadOptions()
	if err != nil {
		return nil, nil, err
	}
	o.Input, o.Set = input, set
	file, diags := pipeline.Load(w.ctx, path, o)
	return file, diags, w.ctx.Err()
}

// LoadOptions are what Read loads files with, for tools that load texts.
func (w *Workspace) LoadOptions() (pipeline.Options, error) {
	dir := w.options.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return pipeline.Options{}, err
		}
	}
	prices, err := pipeline.OpenPrices()
	return pipeline.Options{
		Vars: w.options.Vars, VarFiles: w.options.VarFiles, Getenv: w.getenv, Away: w.options.Away, Dir: dir, Input: w.options.Input, Columns: w.options.Columns, KnowledgeColumns: w.options.KnowledgeColumns, Set: w.options.Set, Absent: w.options.Part != nil,
		Catalog: w.catalog, Prices: prices, Secrets: w.host.Secrets(),
	}, err
}

// getenv is what files find of the environment.
func (w *Workspace) getenv(name string) (string, bool) {
	if w.options.Getenv != nil {
		return w.options.Getenv(name)
	}
	return os.LookupEnv(name)
}

// Load is Read for a file that will be used: errors are a *DiagnosticsError, and
// Events gets warnings.
func (w *Workspace) Load(path string) (*pipeline.File, error) {
	file, diags, err := w.Read(path)
	if err != nil {
		return nil, err
	}
	found := &DiagnosticsError{diags, file.Sources}
	if diags.HasErrors() {
		return nil, found
	}
	if warn := w.options.Events.Warnings; warn != nil && len(diags) > 0 {
		warn(found)
	}
	return file, nil
}

// Choose returns the pipeline of a file to work with.
func (w *Workspace) Choose(file *pipeline.File) (*pipeline.Pipeline, error) {
	var names []string
	for _, p := range file.Pipelines {
		if p.Name == w.options.Pipeline {
			return p, nil
		}
		names = append(names, p.Name)
	}
	switch {
	case w.options.Pipeline != "":
		return nil, fmt.Errorf("%s holds no pipeline %q; it holds %s", file.Path, w.options.Pipeline, strings.Join(names, ", "))
	case len(names) == 0:
		return nil, fmt.Errorf("%s holds no pipeline block", file.Path)
	case len(names) > 1:
		return nil, optionError("Pipeline", "%[2]s holds several pipelines; choose one with %[1]s: %[3]s", file.Path, strings.Join(names, ", "))
	}
	return file.Pipelines[0], nil
}

// Refresh reads the samples again of the collections that a file attaches: of those that the pipeline
// searches that Options names, or of every block. Events get what was found.
func (w *Workspace) Refresh(ctx context.Context, path string) error {
	p := &Pipeline{workspace: w}
	blocks, err := p.blocks(path)
	if err != nil {
		return err
	}
	refreshed := false
	for _, block := range blocks {
		if !block.Attached() {
			continue
		}
		k, err := knowledge.Open(ctx, block, stage.LaunchKnowledge(block, p.launch), knowledge.Options{Samples: w.samples(), Refresh: true, Progress: w.progress, Waits: w.waits})
		if err != nil {
			return p.explain(err)
		}
		if refreshed = true; w.options.Events.Knowledge != nil {
			w.options.Events.Knowledge(k.Report)
		}
	}
	if !refreshed {
		return fmt.Errorf("%s attaches no collection that somebody else makes; knowledge that racflow builds is brought up to date by every run", path)
	}
	return nil
}

// Histories calls do with what the stores hold of a file's knowledge: of what the
// pipeline searches that Options names, or of every block.
func (w *Workspace) Histories(ctx context.Context, path string, do func(*pipeline.Knowledge, *generation.History) error) error {
	p := &Pipeline{workspace: w}
	blocks, err := p.blocks(path)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		h, err := generation.List(ctx, block, stage.LaunchKnowledge(block, p.launch))
		if err != nil {
			return p.explain(err)
		}
		h.Removed = func(collection string) error { return fitted.Remove(w.fitted(), collection) }
		if err := do(block, h); err != nil {
			return err
		}
	}
	return nil
}

// blocks loads a file and returns its knowledge: what the pipeline searches that Options names, or every
// block.
func (p *Pipeline) blocks(path string) (all []*pipeline.Knowledge, err error) {
	if p.file, err = p.workspace.Load(path); err != nil {
		return nil, err
	}
	if p.workspace.options.Pipeline == "" {
		return p.file.Knowledge, nil
	}
	if p.chosen, err = p.workspace.Choose(p.file); err != nil {
		return nil, err
	}
	return p.chosen.Knowledge(), nil
}
