package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine"
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
