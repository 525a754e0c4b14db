package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// Workspace holds what is needed to load files and start stages: a state folder, plugins, and what calls to services
// share.
type Workspace struct {
	ctx     context.Context // its end stops all work
	options Options
	log     *slog.Logger
	state   string // absolute: plugins get folders below it
	host    *host.Host
	catalog *catalog.Catalog

	pending *retry.Handles // handles of results that come later
	waits   *progress.WaitReporter
	unwatch func()      // called when the workspace is closed
	warned  atomic.Bool // the warning that vectors cannot be stored was given

	mu      sync.Mutex
	control *governor.Governor // nil: no stage calls a service
	before  governor.Snapshot  // state of control when this workspace first used it

	stages []io.Closer // that Options.Start has started
}

// NewWorkspace prepares a workspace to load files and start processes, but does neither. All work in the workspace ends
// with ctx.
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
	if err := CheckState(w.state); err != nil {
		return nil, err
	}
	if filepath.Base(w.state) == DefaultState { // only racflow's folder: a folder of another name may be shared
		if err := disk.TightenFolder(w.state); err != nil {
			return nil, err
		}
	}
	w.pending = retry.OpenHandles(filepath.Join(w.state, "pending"), o.Events.waits)
	if w.host, err = host.New(host.Options{Builtin: offered(o.Builtin.stages), StateDir: w.state, Log: w.log, Debugging: o.Events.Debugging, Restarted: outcome.ObserverOr(o.Observe).Restarted}); err != nil {
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

// CheckState refuses a state folder that holds links, devices or another user's files. It skips the folders of single stages, because a plugin may create anything there. Package host checks the
// folders of built-in stages before they start.
func CheckState(dir string) error {
	return disk.OwnFiles(dir, func(inside string) bool {
		kind, below, _ := strings.Cut(filepath.ToSlash(inside), "/")
		return kind == "knowledge" && below != "" || (kind == "stages" || kind == "fitted") && strings.Contains(below, "/")
	})
}

// Catalog returns the catalog of stages that files can use.
func (w *Workspace) Catalog() *catalog.Catalog { return w.catalog }

// Options returns the options of the workspace.
func (w *Workspace) Options() Options { return w.options }

// State returns the absolute path of the state folder.
func (w *Workspace) State() string { return w.state }

// Log returns the workspace's logger; never nil.
func (w *Workspace) Log() *slog.Logger { return w.log }

// kept returns the path of a cache folder.
func (w *Workspace) kept(folder string) string {
	return filepath.Join(cmp.Or(w.options.Cache, w.state), folder)
}

// fitted returns the folder for what stages have learned from knowledge.
func (w *Workspace) fitted() string { return filepath.Join(w.state, "fitted") }

// samples returns the folder for samples of attached collections.
func (w *Workspace) samples() string { return filepath.Join(w.state, "attached") }

// Close ends all processes of the workspace.
func (w *Workspace) Close() {
	w.unwatch()
	w.host.Close()
	w.mu.Lock()
	stages := w.stages
	w.stages = nil
	w.mu.Unlock()
	for _, s := range stages {
		_ = s.Close()
	}
	if spent, any := w.Spent(); any && w.options.Events.Spent != nil {
		w.options.Events.Spent(spent)
	}
}

// opened is what Options.Start returns. The stage ends with the workspace, as a process does.
func (w *Workspace) opened(stage any, err error) (any, error) {
	if c, ok := stage.(io.Closer); ok && err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stages = append(w.stages, c)
	}
	return stage, err
}

// Failed returns why a process of the workspace cannot be started again; nil: all can. Work that needs the process
// fails until the file is opened again.
func (w *Workspace) Failed() error { return w.host.Failed() }

// Again lets stopped stages call their services again, after a service stayed down or denied their calls. It reports
// whether there were such stages: a pipeline that is opened again with the same Services then calls the services again.
func (w *Workspace) Again() bool {
	control := w.governor()
	return control != nil && control.Again()
}

// governor returns what the calls of the workspace's stages share; nil: no stage calls a service.
func (w *Workspace) governor() *governor.Governor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.control
}

// Spent returns the usage and cost of calls of services so far; false: no stage calls a service.
func (w *Workspace) Spent() (governor.Snapshot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.control == nil {
		return governor.Snapshot{}, false
	}
	return w.control.Snapshot().Since(w.before), true
}

// Read reads and checks a pipeline file for inspection. The file is nil only if err is not nil. Values that expressions
// read from the environment, or from outside of the file's folder, are unknown unless Options.Trust granted them
// before.
func (w *Workspace) Read(path string) (*pipeline.File, hcl.Diagnostics, error) {
	file, diags, err := w.read(path, nil)
	if err != nil || w.options.Trust == nil || !file.HasRead() || w.options.Trust(trust.OfReads(file, true)) == nil {
		return file, diags, err
	}
	return w.read(path, blind)
}

// blind leaves values unknown that nobody has granted.
func blind(o *pipeline.Options) { o.Blind = true }

// read reads a file with changed options; nil: as they are.
func (w *Workspace) read(path string, change func(*pipeline.Options)) (*pipeline.File, hcl.Diagnostics, error) {
	o, err := w.LoadOptions()
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		change(&o)
	}
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
		Vars: w.options.Vars, VarFiles: w.options.VarFiles, Getenv: w.getenv, Dir: dir, State: w.state, Input: w.options.Input, Columns: w.options.Columns, KnowledgeColumns: w.options.KnowledgeColumns, Set: w.options.Set, Expected: w.options.expected,
		Catalog: w.catalog, Prices: prices, Secrets: w.host.Secrets(),
		Trusted: w.trusts(),
	}, err
}

// trusts returns a function that reports whether a file already has all that it wants; nil: every file has.
func (w *Workspace) trusts() func(*pipeline.File) bool {
	if w.options.Trust == nil {
		return nil
	}
	return func(f *pipeline.File) bool { return w.options.Trust(trust.New(f, true)) == nil }
}

// trust asks Options.Trust about a file, and about the file with each of the sets of values.
func (w *Workspace) trust(f *pipeline.File, sets ...[]pipeline.Override) error {
	if w.options.Trust == nil {
		return nil
	}
	return w.options.Trust(trust.New(f, false, w.evaluated(f, sets)...))
}

// wants lists what a file wants beyond its folder, as trust asks about it.
func (w *Workspace) wants(f *pipeline.File) []trust.Want {
	return trust.Wants(f, w.evaluated(f, nil)...)
}

// evaluated returns variants of a file: with the values that its expect blocks give, and with each of sets. It omits
// variants that do not load, since these do not start, either.
func (w *Workspace) evaluated(f *pipeline.File, sets [][]pipeline.Override) (all []*pipeline.File) {
	seen := map[string]bool{}
	add := func(set []pipeline.Override, change func(*pipeline.Options)) {
		key := fmt.Sprint(set)
		if len(set) == 0 || seen[key] {
			return
		}
		seen[key] = true
		if other, diags, err := w.read(f.Path, change); err == nil && !diags.HasErrors() {
			all = append(all, other)
		}
	}
	for _, set := range sets {
		add(set, func(o *pipeline.Options) { o.Set = overridden(o.Set, set) })
	}
	for _, p := range f.Pipelines {
		for _, e := range p.Expects {
			if e.Enabled && w.options.expected == nil { // otherwise Options.Trust has been asked about the blocks
				add(e.Set, func(o *pipeline.Options) { o.Expected = e.Set })
			}
		}
	}
	return all
}

// Shown returns a text that people may see: without secrets, and without content of the environment or of files outside
// of the folder.
func (w *Workspace) Shown(text string) string { return w.host.Secrets().Shown(text) }

// getenv looks up a variable of the environment for files.
func (w *Workspace) getenv(name string) (string, bool) {
	if w.options.Getenv != nil {
		return w.options.Getenv(name)
	}
	return os.LookupEnv(name)
}

// Load is like Check, for a file that will be used: it asks Options.Trust. If the file has errors, Load returns
// diagnostics that depend on what the file reads only after that is granted.
func (w *Workspace) Load(path string) (*pipeline.File, error) {
	file, diags, err := w.read(path, nil)
	switch {
	case err != nil:
	case !diags.HasErrors():
		err = w.trust(file)
	case w.options.Trust != nil && file.HasRead():
		if _, err = w.checked(w.read(path, blind)); err == nil {
			err = w.options.Trust(trust.OfReads(file, false))
		}
	}
	return w.checked(file, diags, err)
}

// Check is like Read: errors are a *DiagnosticsError, and Events gets warnings.
func (w *Workspace) Check(path string) (*pipeline.File, error) { return w.checked(w.Read(path)) }

// checked reports the diagnostics of a file.
func (w *Workspace) checked(file *pipeline.File, diags hcl.Diagnostics, err error) (*pipeline.File, error) {
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

// Choose returns the pipeline of a file that Options selects.
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

// Refresh reads again the samples of the collections that a file attaches: those that Options.Pipeline searches, or
// all. Events reports what it found.
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

// Histories calls do with the index versions in the stores of a file's knowledge: the knowledge that Options.Pipeline
// searches, or all.
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

// blocks loads a file and returns its knowledge: the knowledge that Options.Pipeline searches, or all.
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
	ProfilesFolder = "profiles" // profiles of the models of services
)

// Services holds what stages that call services share: a cache of answers, limits and a budget.
// Pipelines opened one after the other may share it, to stay within one budget. Set the fields
// before use.
type Services struct {
	Mode   governor.Mode
	Budget pipeline.Budget // replaces parts of the pipeline's budget; a part of 0 keeps the pipeline's

	mu       sync.Mutex
	control  *governor.Governor // nil: no stage has called a service yet
	profiles *governor.Profiles

	cache string // folder of the response cache; empty: no stage has called a service yet

	waits *progress.WaitReporter // nil: nobody wants reports
	users int                    // open workspaces that use waits
}

// reporter returns the reporter of waits of all workspaces that share the services. It reports to the events of the
// first workspace. A workspace calls leave when it closes.
func (v *Services) reporter(report func(progress.LongWait)) (waits *progress.WaitReporter, leave func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.users++; v.waits != nil && v.users == 1 {
		v.waits.Open()
	}
	if v.waits == nil {
		v.waits = progress.NewWaitReporter(report)
		v.waits.Watch(func(now time.Time, say func(progress.Wait)) {
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
		}
	})
}

// governor returns what all calls share; the first call creates it.
func (v *Services) governor(by *Pipeline) (*governor.Governor, error) {
	w, p := by.workspace, by.chosen
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.control != nil {
		return v.control, nil
	}
	v.cache = w.kept(CacheFolder)
	_, trimmed := cache.Trim(v.cache, cache.Limits{Bytes: by.file.Cache.Answers, Age: by.file.Cache.Age})
	kept, err := cache.Open(v.cache, w.log)
	if err != nil {
		return nil, err // if trimming failed too, the cause is the same
	}
	if trimmed != nil {
		w.log.Warn("the response cache may be larger than its limit", "error", trimmed)
	}
	v.profiles = governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
	o := governor.Options{Cache: kept, Profiles: v.profiles, Mode: v.Mode, Budget: w.budget(p), Log: w.log, Waiting: w.waits}
	v.control = governor.New(w.ctx, o)
	return v.control, nil
}

// budget returns the limits of calls: this share's part of Services.Budget or, where that sets none, of the pipeline's
// budget. p may be nil.
func (w *Workspace) budget(p *pipeline.Pipeline) pipeline.Budget {
	b := w.options.Services.Budget.Part(w.parts())
	if p != nil {
		b.Cost, b.Tokens = cmp.Or(b.Cost, p.Budget.Cost), cmp.Or(b.Tokens, p.Budget.Tokens)
	}
	return b
}

// parts returns how many shares divide limits and budgets.
func (w *Workspace) parts() int {
	if w.options.WholeLimits {
		return 1
	}
	return max(w.options.Share.Of, 1)
}

// vectors returns where the vectors of passages are stored between builds, and the limits.
func (p *Pipeline) vectors() cache.VectorOptions {
	w, kept := p.workspace, p.file.Cache
	return cache.VectorOptions{Root: w.kept(VectorsFolder), Limits: cache.Limits{Bytes: kept.Vectors, Age: kept.Age}, Log: w.log, Warned: &w.warned}
}

// keepProfiles copies the profiles that a run uses to the run's folder.
func (v *Services) keepProfiles(folder string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.profiles == nil { // no stage calls a service
		return nil
	}
	return v.profiles.KeepIn(filepath.Join(folder, ProfilesFolder))
}

// check rejects a limit on cost if a stage has no price.
func (v *Services) check(p *pipeline.Pipeline) error {
	if without := p.Unpriced(); v.Budget.Cost > 0 && len(without) > 0 {
		return optionError("Services.Budget.Cost", "%[2]s has no price, so %[1]s cannot bound what it spends: %[3]s", without[0], pipeline.PriceAdvice)
	}
	return nil
}

// knowing selects what a forecast uses beside the file.
type knowing struct {
	models bool // profiles of models from earlier runs
	cache  bool // replies in the response cache, which cost nothing
}

// looker returns the host of a stage that only forecasts what it would send: it permits no call.
func (w *Workspace) looker(s *pipeline.Stage, by knowing) (sdk.Host, error) {
	o := governor.Options{Mode: governor.Offline, Log: w.log}
	if by.models {
		o.Profiles = governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
	}
	if by.cache {
		kept, err := cache.Open(w.kept(CacheFolder), w.log)
		if err != nil {
			return nil, err
		}
		o.Cache = kept
	}
	return governor.New(w.ctx, o).Stage(governor.Stage{Name: s.Block + "." + s.Name, Kind: s.Kind, Use: s.Use}), nil
}

// share returns what a stage that calls services shares with others; nil: the stage calls none. A store on a server
// does not count as a service.
func (p *Pipeline) share(stage *pipeline.Stage, block string) (sdk.Host, error) {
	if !stage.Info.Network || stage.Kind == sdk.KindStore {
		return nil, nil
	}
	w := p.workspace
	control, err := w.options.Services.governor(p)
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

// relax lets an embedder fail immediately if its retrieve stage has a fallback or does not fail the item. That is so
// once the knowledge is built.
func (p *Pipeline) relax() {
	control := p.workspace.governor()
	for _, s := range p.chosen.Stages {
		if control != nil && s.Retrieve != nil && (len(s.Fallbacks) > 0 || s.OnError != pipeline.FailItem) {
			control.Relax("embed." + s.Retrieve.From.Name)
		}
	}
}

// cover lets items be answered immediately without services that are down, if other voters call none. It reports
// whether that may happen. The caller then asks the services again later, unless it has only one question.
func (p *Pipeline) cover(r *run.Run) bool {
	control := p.workspace.governor()
	names := r.Graph().Covered()
	if control != nil {
		control.Cover(names...)
	}
	return control != nil && len(names) > 0
}

// refuses reports whether all further calls of a stage are refused.
func (p *Pipeline) refuses(stage *pipeline.Stage) bool {
	control := p.workspace.governor()
	return control != nil && control.Refuses(stage.Block+"."+stage.Name)
}

// named returns the pipeline's name; empty: only the knowledge of a file is used.
func (p *Pipeline) named() string {
	if p.chosen == nil {
		return ""
	}
	return p.chosen.Name
}

// asked returns the model that every request of a stage names; empty: unknown, since each of several services may have
// its own model.
func asked(c pipeline.Config) string {
	var several struct{ Backends []string }
	if json.Unmarshal(c.Public, &several) != nil || len(several.Backends) > 0 {
		return ""
	}
	return c.Model()
}
