package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// Options configure a Set.
type Options struct {
	// Engine has the options for opening each file. Its Pipeline selects one pipeline per file; if
	// there are several files, each gets only those Vars that it declares. Without Services, each
	// pipeline has its own services and budget.
	Engine workspace.Options
	Watch  bool         // watch the files that pipelines read, and rebuild after a change
	Queue  int          // maximum waiting requests per pipeline; 0: 4096
	Log    *slog.Logger // logs rebuilds; nil: no log
}

// defaultQueue is the default of Options.Queue.
const defaultQueue = 4096

// Set holds the pipelines of some files and keeps them open.
type Set struct {
	options   Options
	log       *slog.Logger
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	pipelines []*Pipeline
	building  chan struct{} // holds the running builds
	work      sync.WaitGroup
}

// builds limits simultaneous builds of versions: more than one, so that a build of hours does not
// delay all others, but few, so that each build is fast.
const builds = 2

// Open checks all files and starts no stage. Mistakes in the files are a
// *workspace.DiagnosticsError. The end of ctx ends all work of the set; call Close in any case.
func Open(ctx context.Context, files []string, o Options) (*Set, error) {
	if len(files) == 0 {
		return nil, errors.New("there is no pipeline file to serve: name one")
	}
	s := &Set{options: o, log: o.Log, building: make(chan struct{}, builds)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.end = context.WithCancel(ctx)
	names := map[string]string{}
	declared := map[string]bool{}
	for _, file := range files {
		found, err := s.survey(file, len(files) > 1, declared)
		if err != nil {
			s.Close()
			return nil, err
		}
		for _, p := range found {
			if other, ok := names[p.name]; ok {
				s.Close()
				return nil, fmt.Errorf("%s and %s both have a pipeline %q: give one of them another name", other, file, p.name)
			}
			names[p.name] = file
			s.pipelines = append(s.pipelines, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Engine.Vars)) {
		if len(files) > 1 && !declared[name] {
			s.Close()
			return nil, fmt.Errorf("none of the files has a variable %q", name)
		}
	}
	for _, p := range s.pipelines {
		v, err := p.open()
		if err != nil {
			s.Close()
			return nil, err
		}
		p.opened, p.definition = v, v.Definition()
	}
	return s, nil
}

// survey finds the pipelines of a file.
func (s *Set) survey(file string, several bool, declared map[string]bool) ([]*Pipeline, error) {
	o := s.options.Engine
	o.Edition, o.Likely, o.Events.Warnings = true, true, nil // opening a pipeline reports the warnings later
	if several {
		vars, err := s.declared(file)
		if err != nil {
			return nil, err
		}
		o.Vars = maps.Clone(o.Vars)
		maps.DeleteFunc(o.Vars, func(name, _ string) bool { return !vars[name] })
		maps.Copy(declared, vars)
	}
	w, err := workspace.NewWorkspace(s.ctx, o)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	loaded, err := w.Load(file)
	if err != nil {
		return nil, err
	}
	var names []string
	if o.Pipeline == "" {
		for _, p := range loaded.Pipelines {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 { // Choose returns the error if the file has none
		chosen, err := w.Choose(loaded)
		if err != nil {
			return nil, err
		}
		names = []string{chosen.Name}
	}
	var all []*Pipeline
	for _, name := range names {
		o := o
		o.Pipeline, o.Events.Warnings = name, s.options.Engine.Events.Warnings
		if len(all) > 0 {
			o.Events.Warnings = nil // warnings concern the file: report them only once
		}
		if o.Services == nil {
			o.Services = &workspace.Services{}
		}
		all = append(all, newPipeline(s, file, name, o))
	}
	return all, nil
}

// declared returns the variables that a file declares.
func (s *Set) declared(file string) (map[string]bool, error) {
	o := s.options.Engine
	o.Vars, o.VarFiles, o.Set = nil, nil, nil
	w, err := workspace.NewWorkspace(s.ctx, o)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	loaded, _, err := w.Read(file) // errors show when the file is read with values
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, v := range loaded.Variables {
		names[v.Name] = true
	}
	return names, nil
}

// Start builds the knowledge of all pipelines and starts their stages. It returns the error of the
// first pipeline that cannot serve; the other pipelines serve.
func (s *Set) Start(ctx context.Context) error {
	errs := make([]error, len(s.pipelines))
	var all sync.WaitGroup
	for i, p := range s.pipelines {
		all.Go(func() {
			if err := p.Rebuild(ctx); err != nil {
				errs[i] = fmt.Errorf("pipeline %q: %w", p.name, err)
			}
			s.work.Go(p.keep) // immediately, because other pipelines may take hours
			if s.options.Watch {
				s.work.Go(p.watch)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// Pipelines returns all pipelines, in the order of files and blocks.
func (s *Set) Pipelines() []*Pipeline { return slices.Clone(s.pipelines) }

// Names returns the names of all pipelines, in the same order.
func (s *Set) Names() []string {
	names := make([]string, len(s.pipelines))
	for i, p := range s.pipelines {
		names[i] = p.name
	}
	return names
}

// Close ends all requests and processes.
func (s *Set) Close() {
	s.end()
	for _, p := range s.pipelines {
		p.close()
	}
	s.work.Wait()
}

// version is a pipeline as it was when it was opened, with its own processes.
type version struct {
	*workspace.Pipeline
	files   string   // digest of the files that it was read from
	run     *run.Run // nil: not started
	since   time.Time
	holder  string      // holder of the knowledge while it is searched
	sick    atomic.Bool // the version can no longer answer, at least not completely
	closing func(*version)

	mu    sync.Mutex
	users int // requests under way, plus one while it serves
	end   sync.Once
}

// open checks the file of the pipeline, and starts nothing.
func (p *Pipeline) open() (*version, error) {
	var of depends
	var held string
	for first := true; ; first = false {
		stamp, o := of.stamp(p.set.ctx), p.options
		if first { // its dependencies were unknown, so it is opened again
			o.Events.Warnings, o.Events.Plugins = nil, nil
		}
		opened, err := workspace.Open(p.set.ctx, p.file, o)
		if err != nil {
			return nil, err
		}
		var now depends
		now.files, now.rows, now.folders = opened.Depends()
		holds := now.contents()
		if first || !reflect.DeepEqual(now, of) || holds != held {
			opened.Close()
			of, held = now, holds
			continue
		}
		v := &version{Pipeline: opened, files: holds, holder: rand.Text(), users: 1, closing: p.closing}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			opened.Close()
			return nil, errClosed
		}
		p.depends, p.built = of, stamp
		p.versions[v] = true
		return v, nil
	}
}

// start builds the knowledge and starts the stages.
func (v *version) start(ctx context.Context) (err error) {
	if v.run, err = v.Start(ctx); err != nil {
		return err
	}
	v.since = time.Now()
	return v.run.Hold(ctx, v.holder)
}

// same reports whether both versions give the same answers.
func (v *version) same(other *version) bool {
	identity := func(v *version) string {
		return fmt.Sprintf("%s %+v %+v", v.files, v.run.Generations(), v.run.Graph().Identities())
	}
	return identity(v) == identity(other)
}

// use keeps the version open until done; each use needs one done.
func (v *version) use() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.users++
}

func (v *version) done() {
	v.mu.Lock()
	v.users--
	last := v.users == 0
	v.mu.Unlock()
	if last {
		go v.close(true) // closing takes a while, and the caller may hold a lock
	}
}

// leaving limits the time for releasing a version's knowledge.
const leaving = 5 * time.Second

// close ends the version's processes. With drop, it removes knowledge that no other version serves.
func (v *version) close(drop bool) {
	v.end.Do(func() {
		if v.run != nil {
			ctx, cancel := context.WithTimeout(context.Background(), leaving)
			if err := v.run.Leave(ctx, v.holder, drop); err != nil {
				v.Workspace().Log().Warn("knowledge that is not served any more stays until another build removes it", "error", err)
			}
			cancel()
		}
		v.Close()
		v.closing(v)
	})
}

// room returns the maximum number of requests per batch, and of batches under way. If a stage calls
// a service, a batch has one request, because requests would otherwise wait for the slowest answer
// of the batch.
func (v *version) room() (requests, batches int) {
	items, batches := v.run.Size()
	if v.run.Asks() {
		return 1, items * max(batches, 1)
	}
	return items, batches
}

// work sends a batch through the stages, and sets the result of each request.
func (v *version) work(ctx context.Context, b *batch) {
	rows := make([]source.Row, len(b.requests))
	for i, r := range b.requests {
		rows[i] = r.row
	}
	var done run.Batch
	var err error
	switch first := b.requests[0]; first.kind {
	case finds:
		found, errs := v.run.FoundAll(ctx, rows)
		for i, r := range b.requests {
			r.found, r.err = found[i], errs[i]
		}
		return
	case follows:
		done, err = v.run.Follow(ctx, rows[0], nil, first.follow)
	default:
		done, err = v.run.Batch(ctx, rows, nil)
	}
	for i, r := range b.requests {
		if r.err = err; err == nil {
			r.result, r.err = done.Results[i], done.Left[i]
			if !r.whole {
				r.result = v.Shown(r.result)
			}
		}
	}
}

// failed reports whether the stages failed on any request of a batch.
func (b *batch) failed() bool {
	for _, r := range b.requests {
		if r.row.Err == nil && (r.err != nil || r.result.Failure != nil || len(r.result.Missing) > 0) {
			return true
		}
	}
	return false
}
