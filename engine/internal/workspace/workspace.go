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

// Workspace holds what is needed to load files and start stages: a state folder, plugins, and what
// calls of services share.
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
	warned  atomic.Bool // a warning says already that vectors cannot be kept

	mu      sync.Mutex
	control *governor.Governor // nil: no stage calls a service
	before  governor.Snapshot  // the state of control when this workspace first used it

	stages []io.Closer // that Options.Start has started
}

// NewWorkspace prepares to load files and start processes, but does neither. All work in the
// workspace ends with ctx.
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
	if filepath.Base(w.state) == DefaultState { // only ours: a folder of another name may be shared
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

// CheckState refuses a state folder that holds links, devices or another user's files: somebody else has put them there. It
// leaves out the folders of single stages, because a plugin may make there what it likes; package host checks those of
// built-in stages before they start.
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

// kept returns one of the folders of caches.
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

// Failed says why a process of the workspace cannot be started again; nil: all can. Work that needs
// it fails until the file is opened anew.
func (w *Workspace) Failed() error { return w.host.Failed() }

// Again lets stages call their services again that were stopped because a service stayed down or
// denied their calls. It reports whether there were any: a pipeline that is opened anew with the
// same Services then asks them again.
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

// Read reads and checks a pipeline file that is looked at. The file is nil only if err is not. What expressions read of
// the environment, and outside of the file's folder, is unknown unless Options.Trust has granted it before.
func (w *Workspace) Read(path string) (*pipeline.File, hcl.Diagnostics, error) {
	file, diags, err := w.read(path, nil)
	if err != nil || w.options.Trust == nil || !file.HasRead() || w.options.Trust(trust.OfReads(file, true)) == nil {
		return file, diags, err
	}
	return w.read(path, blind)
}

// blind leaves unknown what nobody has granted.
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

// trusts returns what tells whether a file is granted all that it wants already; nil: every file is.
func (w *Workspace) trusts() func(*pipeline.File) bool {
	if w.options.Trust == nil {
		return nil
	}
	return func(f *pipeline.File) bool { return w.options.Trust(trust.New(f, true)) == nil }
}

// trust asks Options.Trust about a file, and about the file with the values that sets give.
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

// evaluated returns a file as it is with other values: those that its expect blocks give, and sets. What does not load
// with them is left out: it does not start, either.
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
			if e.Enabled && w.options.expected == nil { // else the blocks are asked about already
				add(e.Set, func(o *pipeline.Options) { o.Expected = e.Set })
			}
		}
	}
	return all
}

// Shown returns a text for people as it may be shown: without secrets, and without what
// files outside of the folder and the environment hold.
func (w *Workspace) Shown(text string) string { return w.host.Secrets().Shown(text) }

// getenv looks up a variable of the environment for files.
func (w *Workspace) getenv(name string) (string, bool) {
	if w.options.Getenv != nil {
		return w.options.Getenv(name)
	}
	return os.LookupEnv(name)
}

// Load is like Check, for a file that will be used: Options.Trust is asked. If the file has errors, nothing depends on
// what it reads before that is granted.
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

// Refresh reads again the samples of the collections that a file attaches: those that the pipeline in
// Options searches, or all. Events gets what was found.
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

// Histories calls do with the generations in the stores of a file's knowledge: what the pipeline in
// Options searches, or all.
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

// blocks loads a file and returns its knowledge: what the pipeline in Options searches, or all.
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
	Budget pipeline.Budget // replaces the pipeline's, part by part; 0: the pipeline's

	mu       sync.Mutex
	control  *governor.Governor // nil: no stage has called a service yet
	profiles *governor.Profiles

	cache string // folder of the response cache; empty: no stage has called a service yet

	waits *progress.WaitReporter // nil: nobody wants reports
	users int                    // open workspaces that use waits
}

// reporter returns the reporter of waits of all workspaces that share the services; it reports to
// the events of the first workspace. A closing workspace calls leave.
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

// governor returns what all calls share, and makes it for the first call.
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
		return nil, err // if trimming failed too, then for the same reason
	}
	if trimmed != nil {
		w.log.Warn("the response cache may be larger than its limit", "error", trimmed)
	}
	v.profiles = governor.NewProfiles(filepath.Join(w.state, ProfilesFolder))
	o := governor.Options{Cache: kept, Profiles: v.profiles, Mode: v.Mode, Budget: w.budget(p), Log: w.log, Waiting: w.waits}
	v.control = governor.New(w.ctx, o)
	return v.control, nil
}

// budget returns what calls may take: the part that Options.Share has of Services.Budget, else of the pipeline's; p may be nil.
func (w *Workspace) budget(p *pipeline.Pipeline) pipeline.Budget {
	b := w.options.Services.Budget.Part(w.parts())
	if p != nil {
		b.Cost, b.Tokens = cmp.Or(b.Cost, p.Budget.Cost), cmp.Or(b.Tokens, p.Budget.Tokens)
	}
	return b
}

// parts returns over how many shares limits and budgets are divided.
func (w *Workspace) parts() int {
	if w.options.WholeLimits {
		return 1
	}
	return max(w.options.Share.Of, 1)
}

// vectors returns where the vectors of passages are kept between builds, and the limits.
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

// knowing says what a forecast uses beside the file.
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

// share returns what a stage that calls services shares with others; nil: the stage calls none. A
// store on a server is not such a service.
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

// relax lets embedders fail at once if items can be searched for without them, which is so once the
// knowledge is built.
func (p *Pipeline) relax() {
	control := p.workspace.governor()
	for _, s := range p.chosen.Stages {
		if control != nil && s.Retrieve != nil && (len(s.Fallbacks) > 0 || s.OnError != pipeline.FailItem) {
			control.Relax("embed." + s.Retrieve.From.Name)
		}
	}
}

// cover lets items be answered at once without services that are down, if other voters call none. It
// reports whether that may happen: the caller asks again later, or has only one question.
func (p *Pipeline) cover(r *run.Run) bool {
	control := p.workspace.governor()
	names := r.Graph().Covered()
	if control != nil {
		control.Cover(names...)
	}
	return control != nil && len(names) > 0
}

// refuses reports whether no call of a stage is permitted any more.
func (p *Pipeline) refuses(stage *pipeline.Stage) bool {
	control := p.workspace.governor()
	return control != nil && control.Refuses(stage.Block+"."+stage.Name)
}

// named returns the pipeline's name; empty: the work is only on the knowledge of a file.
func (p *Pipeline) named() string {
	if p.chosen == nil {
		return ""
	}
	return p.chosen.Name
}

// asked returns the model that every request of a stage is for; empty: unknown, since each of
// several services may have its own.
func asked(c pipeline.Config) string {
	var several struct{ Backends []string }
	if json.Unmarshal(c.Public, &several) != nil || len(several.Backends) > 0 {
		return ""
	}
	return c.Model()
}
