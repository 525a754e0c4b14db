package engine

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

// Pipeline is a checked file with one of its pipelines. Its stages start when they
// are first needed, and run until Close. Its methods may be called by several
// goroutines at once.
type Pipeline struct {
	workspace *Workspace
	file      *pipeline.File
	chosen    *pipeline.Pipeline // nil: work is on the file's knowledge alone

	invalid atomic.Int64 // rows of the knowledge that were left out, and passages without their enrichment

	opened *Rows // by Columns, for who asks for Rows next; nil: not yet

	// resolved are the values that stages of a resumed run had chosen; set before any
	// starts.
	resolved map[*pipeline.Stage]map[string]any
	// spendable is what a resumed run began with, where Options.Spend is not set.
	spendable spend.Limit

	shipping sync.Mutex
	shipped  []ShipFile // nil: nobody has asked for them

	mu    sync.Mutex
	ready *run.Run // nil: not started
	// spender is set with ready; nil: every voter is asked about every item.
	spender *spend.Spender
	clerk   *spend.Clerk // of Options.Part, where its run may spend only so much; nil: every voter is asked
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
	if err := checkSpend(w.options.Spend, chosen); err != nil {
		return nil, err
	}
	if err := w.relieve(file, chosen); err != nil {
		return nil, err
	}
	if chosen.Memory > 0 {
		w.host.BoundMemory(chosen.Memory, "pipeline "+strconv.Quote(chosen.Name))
	}
	w.trusted(chosen.Programs())
	return &Pipeline{workspace: w, file: file, chosen: chosen}, nil
}

// trusted says which programs are trusted further than a lock and confinement go.
func (w *Workspace) trusted(all []*program.Program) {
	all = slices.DeleteFunc(all, func(p *program.Program) bool { return !p.Development() && !p.Allow.Unconfined })
	if say := w.options.Events.Plugins; say != nil && len(all) > 0 {
		say(all)
	}
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
	spender, err := p.newSpender(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	var ask func(*pipeline.Stage, int, sdk.Item) bool
	var spending run.Spending
	switch {
	case p.clerk != nil:
		ask = p.clerk.Ask
	case spender != nil:
		ask, spending = spender.Ask, passes{spender}
	}
	r, err := run.Open(ctx, p.chosen, run.Options{
		Options: stage.Options{Ballots: o.ballots, Lists: o.Lists, Basis: o.Journal || o.Part != nil, Strict: o.strict, Refuses: p.refuses, Ask: ask, Fitted: p.workspace.fitted(), Scratch: p.workspace.host.Scratch, Pending: p.workspace.pending, Waits: p.workspace.waits, Observe: o.Observe},
		Remote:  o.Remote, Spending: spending, Stands: o.Part.stands(),
		Launch: p.launch, Stdin: o.Stdin, Vectors: p.vectors(),
		Knowledge: func(r build.Report) {
			p.invalid.Add(int64(r.InvalidCount + r.Unenriched))
			if o.Events.Knowledge != nil {
				o.Events.Knowledge(r)
			}
		},
		Progress: p.workspace.progress, Waiting: o.Events.Locked, Edition: o.Edition, Samples: p.workspace.samples(),
	})
	if err != nil {
		return nil, p.explain(err)
	}
	p.relax()
	if o.Edition {
		p.cover(r) // who asks a question does not wait for long
	}
	p.ready, p.spender = r, spender
	return r, nil
}

// Invalid is how many rows of the knowledge were left out, and passages kept without
// their enrichment, when the stages were started.
func (p *Pipeline) Invalid() int { return int(p.invalid.Load()) }

// variant opens the same pipeline with other arguments, for figures. It shares what
// calls of services share.
func (p *Pipeline) variant(ctx context.Context, set []pipeline.Override, change func(*Options)) (*Pipeline, error) {
	o := p.workspace.options
	o.Set = overridden(o.Set, set)
	o.strict, o.Events.Warnings, o.Events.Plugins, o.Events.Findings, o.Spend = true, nil, nil, nil, spend.Limit{}
	change(&o)
	return Open(ctx, p.file.Path, o)
}

// overridden is what is set where some of it is set anew.
func overridden(before, set []pipeline.Override) []pipeline.Override {
	return slices.Concat(slices.DeleteFunc(slices.Clone(before), func(old pipeline.Override) bool {
		return slices.ContainsFunc(set, func(s pipeline.Override) bool { return s.Target == old.Target })
	}), set)
}
