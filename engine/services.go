package engine

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/governor"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// Folders below the state folder.
const (
	CacheFolder    = "cache"    // the answers of services
	VectorsFolder  = "vectors"  // of passages, by embedder and text
	ProfilesFolder = "profiles" // of the models behind them
)

// Services are what the stages that call services share: a cache of answers,
// limits and a budget. Pipelines that are opened one after the other may share
// them, to stay in one budget. Set the fields before.
type Services struct {
	Mode   governor.Mode
	Budget pipeline.Budget // in place of the pipeline's, part by part; 0: the pipeline's
	// Responses is given the response cache of the state folder, and returns what is to keep answers in
	// its place, such as one that several machines share (governor.Shared); nil: the one of the state
	// folder does.
	Responses func(local *cache.Cache) governor.Responses
	// Governed is given what all calls share before the first of them, so that limits can be held
	// together with other processes; nil: they are this one's. Its error is that of the stage that
	// was to start.
	Governed func(*governor.Governor) error

	mu       sync.Mutex
	control  *governor.Governor // nil: no stage has called a service yet
	profiles *governor.Profiles

	cache   string // folder of the response cache; empty: no stage has called a service yet
	counted int    // of what was got from it

	waits *terminal.WaitReporter // nil: nobody listens
	users int                    // of waits: open workspaces
}

// reporter is what reports the waits of all workspaces that share the services, to the
// events of the first. leave is called when one is closed.
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

// countHits notes how often the response cache had the answer. The caller holds mu.
func (v *Services) countHits() {
	if v.control == nil {
		return
	}
	hits := v.control.Snapshot().Total.CacheHits
	cache.CountHits(v.cache, int64(hits-v.counted))
	v.counted = hits
}

// of returns what all calls share; before the first call there is nothing.
func (v *Services) of(by *Pipeline) (*governor.Governor, error) {
	w, p := by.workspace, by.chosen
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.control != nil {
		return v.control, nil
	}
	v.cache = filepath.Join(w.state, CacheFolder)
	if _, err := cache.Trim(v.cache, cache.Limits{Bytes: by.file.Cache.Answers, Age: by.file.Cache.Age}); err != nil {
		w.log.Warn("the response cache may be larger than its limit", "error", err)
	}
	kept, err := cache.Open(v.cache, w.log)
	if err != nil {
		return nil, err
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

// vectors says where the vectors of passages are kept between builds.
func (p *Pipeline) vectors() cache.VectorOptions {
	w, kept := p.workspace, p.file.Cache
	return cache.VectorOptions{Root: filepath.Join(w.state, VectorsFolder), Limits: cache.Limits{Bytes: kept.Vectors, Age: kept.Age}, Log: w.log}
}

// keepProfiles keeps the profiles that a run goes by in its folder.
func (v *Services) keepProfiles(folder string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.profiles == nil { // no stage calls a service
		return nil
	}
	return v.profiles.KeepIn(filepath.Join(folder, ProfilesFolder))
}

// known are the profiles that stages go by; nil: no stage calls a service.
func (v *Services) known() *governor.Profiles {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.profiles
}

// check refuses a bound on what is spent where nobody knows what that is.
func (v *Services) check(p *pipeline.Pipeline) error {
	if without := p.Unpriced(); v.Budget.Cost > 0 && len(without) > 0 {
		return optionError("Services.Budget.Cost", "%[2]s has no price, so %[1]s cannot bound what it spends: %[3]s", without[0], pipeline.PriceAdvice)
	}
	return nil
}

// knowing is what a forecast goes by beside the file.
type knowing struct {
	models bool // what earlier runs found out of them
	cache  bool // what the response cache has costs nothing
}

// looker is the host of a stage that only says what it would send: it permits no call.
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

// share returns what a stage that calls services shares with the others; nil
// for those that do not. A store on a server is no such service.
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

// relax lets those embedders fail at once without which items can be searched for: that is
// so once the knowledge is built.
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

// cover lets items be answered without those services at once that are down, where other voters call none. It reports
// whether that may happen: who calls it asks again, or has one question.
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

// refuses reports whether no call of a stage is let through any more.
func (p *Pipeline) refuses(stage *pipeline.Stage) bool {
	p.workspace.mu.Lock()
	control := p.workspace.control
	p.workspace.mu.Unlock()
	return control != nil && control.Refuses(stage.Block+"."+stage.Name)
}

// named is the pipeline's name; empty: work is on the knowledge of a file alone.
func (p *Pipeline) named() string {
	if p.chosen == nil {
		return ""
	}
	return p.chosen.Name
}

// asked is the model that every request of a stage is for; empty: nobody knows, as of
// several services, of which each may have its own.
func asked(c pipeline.Config) string {
	var several struct{ Backends []string }
	if json.Unmarshal(c.Public, &several) != nil || len(several.Backends) > 0 {
		return ""
	}
	return c.Model()
}
