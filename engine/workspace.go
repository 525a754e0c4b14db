package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// Workspace holds what is needed to load files and start stages: a state folder, plugins, and what
// calls of services share.
type Workspace struct {
	ctx     context.Context // ends all work
	options Options
	log     *slog.Logger
	state   string // absolute, because plugins get folders below it
	host    *host.Host
	catalog *catalog.Catalog

	pending *retry.Handles // of results that come later
	waits   *terminal.WaitReporter
	unwatch func()      // call it when the workspace closes
	warned  atomic.Bool // a warning was logged that vectors cannot be stored

	mu      sync.Mutex
	control *governor.Governor // nil: no stage calls a service
	before  governor.Snapshot  // the calls before this workspace's first one

	shipments []string // folders of files that are sent to other machines
}

// NewWorkspace creates a workspace. It neither loads files nor starts processes. The end of ctx
// ends all its work.
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
	if filepath.Base(w.state) == DefaultState { // a folder of another name may be shared on purpose
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

// Catalog returns the stages that files can use.
func (w *Workspace) Catalog() *catalog.Catalog { return w.catalog }

// Options returns the options of the workspace.
func (w *Workspace) Options() Options { return w.options }

// State returns the absolute path of the state folder.
func (w *Workspace) State() string { return w.state }

// Log returns the workspace's logger; it is never nil.
func (w *Workspace) Log() *slog.Logger { return w.log }

// fitted returns the folder of what stages have learnt from knowledge.
func (w *Workspace) fitted() string { return filepath.Join(w.state, "fitted") }

// samples returns the folder of samples of other programs' collections.
func (w *Workspace) samples() string { return filepath.Join(w.state, "attached") }

// Close ends all processes.
func (w *Workspace) Close() {
	w.unwatch()
	w.host.Close()
	w.mu.Lock()
	for _, dir := range w.shipments {
		_ = os.RemoveAll(dir) // if this fails, a later shipment removes it
	}
	w.mu.Unlock()
	if spent, any := w.Spent(); any && w.options.Events.Spent != nil {
		w.options.Events.Spent(spent)
	}
}

// Failed returns why a process of the workspace is no longer restarted; nil: all processes work.
// Whatever needs that process fails until the file is opened again.
func (w *Workspace) Failed() error { return w.host.Failed() }

// Again lets stages that were stopped, because a service stayed down or denied their calls, call
// their services once more. It reports whether there were any: a pipeline that is opened again with
// the same Services then asks these services.
func (w *Workspace) Again() bool {
	w.mu.Lock()
	control := w.control
	w.mu.Unlock()
	return control != nil && control.Again()
}

// Spent returns the totals of the calls of services so far; false: no stage calls one.
func (w *Workspace) Spent() (governor.Snapshot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.control == nil {
		return governor.Snapshot{}, false
	}
	return w.control.Snapshot().Since(w.before), true
}

// Read reads and checks a pipeline file. The file is non-nil even if the error is, too.
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

// LoadOptions returns the options with which Read loads files, for tools that load texts.
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

// getenv looks up environment variables for files.
func (w *Workspace) getenv(name string) (string, bool) {
	if w.options.Getenv != nil {
		return w.options.Getenv(name)
	}
	return os.LookupEnv(name)
}

// Load is Read for a file that will be used: mistakes are a *DiagnosticsError, and warnings go to
// Events.
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

// Refresh reads the samples of the collections that a file attaches again: of those that the
// pipeline in Options searches, or of every block. It reports the result to Events.
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
		return fmt.Errorf("%s attaches no collection that another program makes; knowledge that racflow builds is brought up to date by every run", path)
	}
	return nil
}

// Histories calls do with the stores' contents of a file's knowledge: of the knowledge that the
// pipeline in Options searches, or of every block.
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

// blocks loads a file and returns its knowledge: what the pipeline in Options searches, or every
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

// Folders below the state folder.
const (
	CacheFolder    = "cache"    // answers of services
	VectorsFolder  = "vectors"  // vectors of passages, by embedder and text
	ProfilesFolder = "profiles" // profiles of models behind services
)

// Services holds what all stages that call services share: a cache of answers, limits and a budget.
// Several pipelines, one after the other, may use the same Services to share one budget. Set the
// fields before use.
type Services struct {
	Mode   governor.Mode
	Budget pipeline.Budget // overrides the pipeline's budget, part by part; 0: the pipeline's
	// Responses gets the response cache of the state folder and returns the store to use instead,
	// such as one that several machines share (governor.Shared); nil: the state folder's cache is
	// used.
	Responses func(local *cache.Cache) governor.Responses
	// Governed gets the Governor of all calls before the first call, so that other processes can
	// share its limits; nil: they are not shared. If it fails, the stage that was about to start
	// fails with its error.
	Governed func(*governor.Governor) error

	mu       sync.Mutex
	control  *governor.Governor // nil: no stage has called a service yet
	profiles *governor.Profiles

	cache   string // folder of the response cache; empty: no stage has called a service yet
	counted int    // cache hits noted so far

	waits *terminal.WaitReporter // nil: waits are not reported
	users int                    // number of open workspaces that use waits
}

// reporter returns the reporter for all workspaces that share the services; it reports to the
// events of the first one. Call leave when a workspace closes.
func (v *Services) reporter(report func(terminal.LongWait)) (waits *terminal.WaitReporter, leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.users++; v.waits != nil && v.users == 1 {
		v.waits.Open()
	}
	if v.waits == nil {
		v.waits = terminal.NewWaitReporter(report)
		v.waits.Watch(func(now time.Time, say func(terminal.Wait)) {
			v.mu.Lock()
			control := v.control
			v.mu.Unlock()
			if control != nil {
				control.Waits(now, say)
			}
		})
	}
	return v.waits, sync.OnceFunc(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.users--; v.users == 0 {
			v.waits.Close()
			v.countHits()
		}
	})
}

// countHits records how often the response cache had the answer. The caller holds mu.
func (v *Services) countHits() {
	if v.control == nil {
		return
	}
	hits := v.control.Snapshot().Total.CacheHits
	cache.CountHits(v.cache, int64(hits-v.counted))
	v.counted = hits
}

// of returns the Governor that all calls share, and creates it for the first one.
func (v *Services) of(by *Pipeline) (*governor.Governor, error) {
	w, p := by.workspace, by.chosen
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.control != nil {
		return v.control, nil
	}
	v.cache = filepath.Join(w.state, CacheFolder)
	_, trimmed := cache.Trim(v.cache, cache.Limits{Bytes: by.file.Cache.Answers, Age: by.file.Cache.Age})
	kept, err := cache.Open(v.cache, w.log)
	if err != nil {
		return nil, err // it also covers a failure to trim
	}
	if trimmed != nil {
		w.log.Warn("the response cache may be larger than its limit", "error", trimmed)
	}
	v.profiles = governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
	responses := governor.Responses(kept)
	if v.Responses != nil {
		responses = v.Responses(kept)
	}
	o := governor.Options{Cache: responses, Profiles: v.profiles, Mode: v.Mode, Budget: v.Budget, Log: w.log, Waiting: w.waits}
	if p != nil {
		if o.Budget.Cost == 0 {
			o.Budget.Cost = p.Budget.Cost
		}
		if o.Budget.Tokens == 0 {
			o.Budget.Tokens = p.Budget.Tokens
		}
	}
	control := governor.New(w.ctx, o)
	if v.Governed != nil {
		if err := v.Governed(control); err != nil {
			return nil, err
		}
	}
	v.control = control
	return control, nil
}

// vectors returns where the vectors of passages are stored between builds.
func (p *Pipeline) vectors() cache.VectorOptions {
	w, kept := p.workspace, p.file.Cache
	return cache.VectorOptions{Root: filepath.Join(w.state, VectorsFolder), Limits: cache.Limits{Bytes: kept.Vectors, Age: kept.Age}, Log: w.log, Warned: &w.warned}
}

// keepProfiles stores the profiles that a run uses in the run's folder.
func (v *Services) keepProfiles(folder string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.profiles == nil { // no stage calls a service
		return nil
	}
	return v.profiles.KeepIn(filepath.Join(folder, ProfilesFolder))
}

// known returns the profiles that stages use; nil: no stage calls a service.
func (v *Services) known() *governor.Profiles {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.profiles
}

// check rejects a spending limit if a price is unknown.
func (v *Services) check(p *pipeline.Pipeline) error {
	if without := p.Unpriced(); v.Budget.Cost > 0 && len(without) > 0 {
		return optionError("Services.Budget.Cost", "%[2]s has no price, so %[1]s cannot bound what it spends: %[3]s", without[0], pipeline.PriceAdvice)
	}
	return nil
}

// knowing selects what a forecast may use beside the file.
type knowing struct {
	models bool // the profiles that earlier runs found
	cache  bool // answers in the response cache cost nothing
}

// looker returns the host of a stage that only forecasts its calls: it permits none.
func (w *Workspace) looker(s *pipeline.Stage, by knowing) (sdk.Host, error) {
	o := governor.Options{Mode: governor.Offline, Log: w.log}
	if by.models {
		o.Profiles = governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
	}
	if by.cache {
		kept, err := cache.Open(filepath.Join(w.state, CacheFolder), w.log)
		if err != nil {
			return nil, err
		}
		o.Cache = kept
	}
	return governor.New(w.ctx, o).Stage(governor.Stage{Name: s.Block + "." + s.Name, Kind: s.Kind, Use: s.Use}), nil
}

// share returns the sdk.Host that a stage shares with others if it calls services, else nil. A
// store on a server is no such service.
func (p *Pipeline) share(stage *pipeline.Stage, block string) (sdk.Host, error) {
	if !stage.Info.Network || stage.Kind == sdk.KindStore {
		return nil, nil
	}
	w := p.workspace
	control, err := w.options.Services.of(p)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.control == nil {
		w.control, w.before = control, control.Snapshot()
	}
	return control.Stage(governor.Stage{
		Name: stage.Block + "." + block, Kind: stage.Kind, Use: stage.Use, Limit: stage.Limit, Price: stage.Price,
		Required: len(stage.Fallbacks) == 0 && stage.OnError == pipeline.FailItem,
		Observe:  w.options.Observe, Pipeline: p.named(), Model: asked(stage.Config),
	}), nil
}

// relax lets embedders fail at once if items can be searched for without them, which holds once the
// knowledge is built.
func (p *Pipeline) relax() {
	p.workspace.mu.Lock()
	control := p.workspace.control
	p.workspace.mu.Unlock()
	for _, s := range p.chosen.Stages {
		if control != nil && s.Retrieve != nil && (len(s.Fallbacks) > 0 || s.OnError != pipeline.FailItem) {
			control.Relax("embed." + s.Retrieve.From.Name)
		}
	}
}

// cover lets items be answered at once without services that are down, if other voters call no service. It
// reports whether that may happen. Its callers ask these items again later, or have only one question.
func (p *Pipeline) cover(r *run.Run) bool {
	p.workspace.mu.Lock()
	control := p.workspace.control
	p.workspace.mu.Unlock()
	names := r.Graph().Covered()
	if control != nil {
		control.Cover(names...)
	}
	return control != nil && len(names) > 0
}

// refuses reports whether all further calls of a stage are refused.
func (p *Pipeline) refuses(stage *pipeline.Stage) bool {
	p.workspace.mu.Lock()
	control := p.workspace.control
	p.workspace.mu.Unlock()
	return control != nil && control.Refuses(stage.Block+"."+stage.Name)
}

// named returns the pipeline's name; empty: only the knowledge of a file is used.
func (p *Pipeline) named() string {
	if p.chosen == nil {
		return ""
	}
	return p.chosen.Name
}

// asked returns the model that all requests of a stage are for; empty: unknown, for example with
// several services that may have different models.
func asked(c pipeline.Config) string {
	var several struct{ Backends []string }
	if json.Unmarshal(c.Public, &several) != nil || len(several.Backends) > 0 {
		return ""
	}
	return c.Model()
}
