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

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
)

// Options say what is opened and how.
type Options struct {
	// Engine is what each file is opened with. Its Pipeline chooses one of each file; where several
	// files are opened, each gets those of its Vars that it declares. Without Services, each
	// pipeline has its own, and so a budget of its own.
	Engine engine.Options
	Watch  bool         // look at the files that pipelines read, and rebuild what has changed
	Queue  int          // requests that may wait per pipeline; 0: 4096
	Log    *slog.Logger // of rebuilds; nil: nothing
}

// defaultQueue is how many requests may wait per pipeline where Options do not say.
const defaultQueue = 4096

// Set is the pipelines of some files, kept open.
type Set struct {
	options   Options
	log       *slog.Logger
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	pipelines []*Pipeline
	building  chan struct{} // holds the builds under way
	work      sync.WaitGroup
}

// builds is how many versions are built at a time: one that takes hours does not hold up all
// others, and the machine is not divided among many.
const builds = 2

// Open checks all files and starts no stage: mistakes in them are a *engine.DiagnosticsError. All
// that the set does ends with ctx; Close it in any case.
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
	o.Edition, o.Events.Warnings = true, nil // they come when a pipeline is opened
	if several {
		vars, err := s.declared(file)
		if err != nil {
			return nil, err
		}
		o.Vars = maps.Clone(o.Vars)
		maps.DeleteFunc(o.Vars, func(name, _ string) bool { return !vars[name] })
		maps.Copy(declared, vars)
	}
	w, err := engine.NewWorkspace(s.ctx, o)
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
	if len(names) == 0 { // or the error that says so
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
			o.Events.Warnings = nil // they are of the file
		}
		if o.Services == nil {
			o.Services = &engine.Services{}
		}
		all = append(all, newPipeline(s, file, name, o))
	}
	return all, nil
}

// declared are the variables of a file.
func (s *Set) declared(file string) (map[string]bool, error) {
	o := s.options.Engine
	o.Vars, o.VarFiles, o.Set = nil, nil, nil
	w, err := engine.NewWorkspace(s.ctx, o)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	loaded, _, err := w.Read(file) // what is wrong shows when it is read with values
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, v := range loaded.Variables {
		names[v.Name] = true
	}
	return names, nil
}

// Start builds the knowledge of all pipelines and starts their stages. The error is that of the
// first pipeline that cannot serve; the others serve.
func (s *Set) Start(ctx context.Context) error {
	errs := make([]error, len(s.pipelines))
	var all sync.WaitGroup
	for i, p := range s.pipelines {
		all.Go(func() {
			if err := p.Rebuild(ctx); err != nil {
				errs[i] = fmt.Errorf("pipeline %q: %w", p.name, err)
			}
			s.work.Go(p.keep) // at once: the others may take hours
			if s.options.Watch {
				s.work.Go(p.watch)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// Pipelines are all pipelines, in the order of files and blocks.
func (s *Set) Pipelines() []*Pipeline { return slices.Clone(s.pipelines) }

// Pipeline is the one of a name; nil: there is none.
func (s *Set) Pipeline(name string) *Pipeline {
	for _, p := range s.pipelines {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Close ends all requests and processes.
func (s *Set) Close() {
	s.end()
	for _, p := range s.pipelines {
		p.close()
	}
	s.work.Wait()
}

// version is a pipeline as it was when it was opened, with processes of its own.
type version struct {
	*engine.Pipeline
	files   string   // digest of the files that it was read from
	run     *run.Run // nil: not started
	since   time.Time
	holder  string      // of the knowledge, while it is searched
	sick    atomic.Bool // it cannot answer any more, or not all
	closing func(*version)

	mu    sync.Mutex
	users int // requests that are worked on, and one for who serves it
	end   sync.Once
}

// open checks the file of the pipeline, and starts nothing.
func (p *Pipeline) open() (*version, error) {
	var of depends
	var held string
	for first := true; ; first = false {
		stamp, o := of.stamp(p.set.ctx), p.options
		if first { // what it depends on is not known, so it is opened again
			o.Events.Warnings, o.Events.Plugins = nil, nil
		}
		opened, err := engine.Open(p.set.ctx, p.file, o)
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

// same reports whether both answer alike.
func (v *version) same(other *version) bool {
	identity := func(v *version) string {
		return fmt.Sprintf("%s %+v %+v", v.files, v.run.Generations(), v.run.Graph().Identities())
	}
	return identity(v) == identity(other)
}

// use keeps the version open until done is called as often.
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
		go v.close(true) // it takes a moment, and the caller may hold a lock
	}
}

// leaving is how long a version may take to say that it does not need its knowledge any more.
const leaving = 5 * time.Second

// close ends its processes. With drop, knowledge that nobody else serves is removed.
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

// room is how many requests travel together at most, and how many batches are under way at a
// time. Where a stage asks a service each item travels alone: it would wait for the slowest answer
// of its batch.
func (v *version) room() (requests, batches int) {
	items, batches := v.run.Size()
	if v.run.Asks() {
		return 1, items * max(batches, 1)
	}
	return items, batches
}

// work takes a batch through the stages, and sets what became of each request.
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
		done, err = v.run.Follow(ctx, rows[0], v.Counting(), first.follow)
	default:
		done, err = v.run.Batch(ctx, rows, v.Counting())
	}
	for i, r := range b.requests {
		if r.err = err; err == nil {
			r.result, r.err = done.Results[i], done.Left[i]
		}
	}
}

// failed reports whether the stages have failed on one of a batch's requests.
func (b *batch) failed() bool {
	for _, r := range b.requests {
		if r.row.Err == nil && (r.err != nil || r.result.Failure != nil || len(r.result.Missing) > 0) {
			return true
		}
	}
	return false
}

// stream hands on values from several goroutines to one.
type stream[T any] struct {
	mu    sync.Mutex
	some  []T
	there chan struct{} // has a value where some are
}

func newStream[T any]() *stream[T] { return &stream[T]{there: make(chan struct{}, 1)} }

func (s *stream[T]) add(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some = append(s.some, v)
	select {
	case s.there <- struct{}{}:
	default:
	}
}

func (s *stream[T]) take() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := s.some
	s.some = nil
	return some
}
