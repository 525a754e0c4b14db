package run

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
)

// Launch starts the process of a stage. What it returns implements the sdk's
// interface of the stage's kind; of an embed stage stages.Embedder, of a
// store stage stages.Store.
type Launch func(context.Context, LaunchRequest) (any, error)

// LaunchRequest says which process to start.
type LaunchRequest struct {
	Stage     *pipeline.Stage
	Knowledge string // the block that the stage stands in, if that is a knowledge
	State     []byte // of a fitted embedder
}

// Options are what Open needs beside the pipeline.
type Options struct {
	Launch Launch
	Stdin  io.Reader
	Again  bool // keep ballots with the results, so that Again can elect
	Lists  bool // keep what each retrieve and rerank stage found with the results
	// Strict ends the run early where a stage has to stop, rather than answer items
	// without it: figures are then of one method.
	Strict bool
	// Refuses reports whether every call that a stage asks its host for is refused from
	// now on. A stage that had to stop is then still asked about the items that it had
	// been given: what the response cache holds, it answers. nil: none is asked.
	Refuses   func(*pipeline.Stage) bool
	Knowledge func(build.Report) // told of every knowledge that is ready; may be nil
	// Building is told while knowledge is built what is done ("embedding"), and how
	// far that is; may be nil.
	Building func(doing, name string, done, total int)
	Waiting  func(name string, why error) // told when another process is building it; may be nil
}

// Run is a pipeline that is ready for items.
type Run struct {
	pipeline  *pipeline.Pipeline
	knowledge map[*pipeline.Knowledge]*knowledge.Knowledge
	labels    map[*pipeline.Knowledge]*rule.LabelSet
	stages    []*stage // by position in the pipeline; nil: not run
	retrieve  int      // the last retrieve stage; -1: none
	found     int      // the last stage that writes candidates: a retrieve or a rerank stage; -1: none
	elect     int      // the last elect stage; -1: none
	voters    []int
	batch     int  // items that travel together
	window    int  // batches under way at a time
	network   bool // a stage asks other machines
	again     bool // as Options.Again
	lists     bool // as Options.Lists
	strict    bool // as Options.Strict
	refuses   func(*pipeline.Stage) bool
	ending    *ending // of the run, before its input has ended

	mu   sync.Mutex
	lost []bool     // by stage: it, or a fallback of it, had to stop; nil: none had to
	halt []*Failure // why they had to
}

// stage is a stage of the pipeline that is run.
type stage struct {
	*pipeline.Stage
	run       *Run
	index     int
	in        inputs
	knowledge *knowledge.Knowledge // of the nearest retrieve stage; nil: none
	labels    *rule.LabelSet
	above     *rule.LabelSet // of a retrieve or rerank stage: those that its when rule sees
	work      work
	whole     *whole        // of a retrieve stage whose whole rule holds, and of those below it; nil: it searches
	fallbacks []*stage      // as Stage.Fallbacks
	rescue    bool          // it is a fallback itself
	slots     chan struct{} // holds its calls that are under way; nil: the batches under way are few
	readers   []*stage      // of a prompt stage: those that read its prompts
	ending    *ending       // of its waits: it has to stop, or the run ends
	stopped   atomic.Bool   // it had to stop, and is not called again
	print     string        // fingerprint of its process
	rows      atomic.Int64
	busy      atomic.Int64
}

func (s *stage) String() string { return s.Block + "." + s.Name }

// Open brings the pipeline's knowledge up to date and starts its stages.
func Open(ctx context.Context, p *pipeline.Pipeline, o Options) (*Run, error) {
	r := &Run{
		pipeline: p, retrieve: -1, found: -1, elect: -1,
		knowledge: map[*pipeline.Knowledge]*knowledge.Knowledge{},
		labels:    map[*pipeline.Knowledge]*rule.LabelSet{},
		stages:    make([]*stage, len(p.Stages)),
		ending:    newEnding(), again: o.Again, lists: o.Lists, strict: o.Strict, refuses: o.Refuses,
	}
	r.arrange()
	r.measure()
	processes := make([]any, len(p.Stages))
	g, gctx := errgroup.WithContext(ctx)
	for i, s := range r.stages {
		if s != nil && s.Kind != "" {
			g.Go(func() (err error) {
				processes[i], err = o.Launch(gctx, LaunchRequest{Stage: s.Stage})
				return err
			})
		}
	}
	g.Go(func() error { return r.openKnowledge(gctx, o) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, s := range r.stages {
		if s == nil {
			continue
		}
		if err := r.prepare(ctx, s, processes[i], o.Launch); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// arrange finds out which stages run and what each reads from.
func (r *Run) arrange() {
	in := inputs{retrieve: -1, found: -1, prompt: -1}
	for i, s := range r.pipeline.Stages {
		if !s.Enabled || !r.pipeline.Used(i) {
			continue
		}
		in.needs = r.needs(i)
		r.stages[i] = &stage{Stage: s, run: r, index: i, in: in, ending: newEnding()}
		r.stages[i].in.voters = slices.Clone(in.voters)
		switch s.Block {
		case "retrieve":
			in.retrieve, r.retrieve = i, i
			in.found, r.found = i, i
		case "rerank":
			in.found, r.found = i, i
		case "prompt":
			in.prompt = i
		case "sample":
			in.voters = append(in.voters, i)
		case "elect":
			r.elect = i
		}
		for _, n := range r.pipeline.Needs(i) {
			switch above := r.stages[n]; {
			case above.Block == "prompt":
				above.readers = append(above.readers, r.stages[i])
			case s.Block == "elect" && (above.Block != "sample" || r.stages[i].names(above)):
				r.stages[i].in.firm = append(r.stages[i].in.firm, n)
			}
		}
	}
	r.voters = in.voters
}

// needs returns all stages that stage i waits for, directly or not.
func (r *Run) needs(i int) []int {
	all := map[int]bool{}
	var add func(int)
	add = func(i int) {
		for _, n := range r.pipeline.Needs(i) {
			if !all[n] {
				all[n] = true
				add(n)
			}
		}
	}
	add(i)
	var sorted []int
	for n := range i {
		if all[n] {
			sorted = append(sorted, n)
		}
	}
	return sorted
}

// prepare gives a stage its work and its fallbacks.
func (r *Run) prepare(ctx context.Context, s *stage, process any, launch Launch) error {
	if at := s.in.retrieve; at >= 0 {
		block := r.stages[at].Retrieve.From
		s.knowledge, s.labels, s.above = r.knowledge[block], r.labels[block], r.labels[block]
		s.whole = r.stages[at].whole
	}
	var err error
	if s.Retrieve != nil {
		block := s.Retrieve.From
		s.knowledge, s.labels = r.knowledge[block], r.labels[block]
		if s.whole, err = s.readWhole(ctx); err != nil {
			return err
		}
	}
	if s.work, err = r.workOf(s, process); err != nil {
		return err
	}
	s.print = fingerprint(process)
	for _, f := range s.Fallbacks {
		fs := &stage{Stage: f.Stage, run: r, index: s.index, in: s.in, knowledge: s.knowledge, labels: s.labels, above: s.above, rescue: true, ending: newEnding()}
		fs.slots = r.slotsOf(fs.Stage)
		if fs.Retrieve == nil { // one of those searches
			fs.whole = s.whole
		}
		var process any
		if fs.Kind != "" {
			if process, err = launch(ctx, LaunchRequest{Stage: fs.Stage}); err != nil {
				return err
			}
		}
		if fs.work, err = r.workOf(fs, process); err != nil {
			return err
		}
		fs.print = fingerprint(process)
		s.fallbacks = append(s.fallbacks, fs)
	}
	return nil
}

// times returns what each stage has done so far. What a retrieve stage does is
// told apart as embedding and searching.
func (r *Run) times() []StageTime {
	var all []StageTime
	for _, block := range r.pipeline.Knowledge() {
		if k := r.knowledge[block]; k != nil {
			embeds, searches := k.Meters()
			rows, busy := embeds.Read()
			all = append(all, StageTime{"embed." + block.Embed.Use, rows, busy})
			rows, busy = searches.Read()
			all = append(all, StageTime{"search." + block.Store.Use, rows, busy})
		}
	}
	for _, s := range r.stages {
		if s != nil && s.Kind != "" {
			all = append(all, StageTime{s.String(), int(s.rows.Load()), time.Duration(s.busy.Load())})
		}
	}
	return all
}
