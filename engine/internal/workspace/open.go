package workspace

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Builtin holds the stages that the running program offers by executing itself. Only Serve makes a Builtin. So a
// program that has not called Serve cannot open a pipeline, and cannot start copies of its own main function.
type Builtin struct{ stages []sdk.Stage }

// Serve enables a program to run stages itself. The engine starts the running program once for each stage. In such a
// process Serve runs the stage and does not return; in any other process it returns immediately. Call it as the first
// statement of main or earlier: each stage process also executes everything before the call.
func Serve(stages []sdk.Stage) Builtin {
	if os.Getenv(wire.StageKey) != "" && os.Getenv(wire.CookieKey) == wire.CookieValue {
		serve.Plugin(offered(stages))
		os.Exit(0)
	}
	return Builtin{stages}
}

// offered describes the process of a built-in stage.
func offered(stages []sdk.Stage) sdk.Plugin {
	return sdk.Plugin{Name: "racflow", Version: Version(), Stages: stages}
}

// Stages returns the stages that Serve was given.
func (b Builtin) Stages() []sdk.Stage { return b.stages }

// Pipeline is a checked file with one of its pipelines. Its stages start when they are first needed, and run until
// Close. Several goroutines may call its methods at the same time.
type Pipeline struct {
	workspace *Workspace
	file      *pipeline.File
	chosen    *pipeline.Pipeline // nil: only the file's knowledge is used

	invalid atomic.Int64 // excluded documents, rows that a stage refused, and passages without their enrichment

	opened *Rows // opened by Columns for the next call of Rows; nil: not opened

	folds  *split // from Options.Folds; nil: none
	pooled *sums  // figures of the folds before; nil: this pipeline is measured alone

	// resolved holds the values that the stages of a resumed run chose earlier. It is set before any stage starts.
	resolved map[*pipeline.Stage]map[string]any
	// began has what stages had learned when a resumed run began; nil: the run is new. spent is the cost of calibrating
	// its election.
	began map[string]string
	spent outcome.Bill
	// spendable is the limit with which a resumed run began, used if Options.Spend is not set.
	spendable spend.Limit

	mu    sync.Mutex
	ready *run.Run // nil: not started
	// spender belongs to a run; nil: every voter is asked about every item.
	spender *spend.Spender
}

// Open loads and checks a pipeline file. It starts no stage. All work of the pipeline ends with ctx; call Close in any
// case. A mistake in the file is a *DiagnosticsError, an unsuitable option an *OptionError.
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

// Open is like the function Open, in an existing workspace.
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
	if n := w.parts(); n > 1 {
		for _, l := range file.Limits {
			*l = l.Part(n)
		}
		chosen.Budget = chosen.Budget.Part(n)
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
	p := &Pipeline{workspace: w, file: file, chosen: chosen}
	if w.options.Folds != 0 {
		if err := p.split(w.ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// trusted passes programs without a lock or without confinement to Events.Plugins.
func (w *Workspace) trusted(all []*program.Program) {
	all = slices.DeleteFunc(all, func(p *program.Program) bool { return !p.Development() && !p.Allow.Unconfined })
	if say := w.options.Events.Plugins; say != nil && len(all) > 0 {
		say(all)
	}
}

// Close ends all processes of the workspace.
func (p *Pipeline) Close() { p.workspace.Close() }

// Workspace returns the workspace of the pipeline.
func (p *Pipeline) Workspace() *Workspace { return p.workspace }

// File returns the loaded file.
func (p *Pipeline) File() *pipeline.File { return p.file }

// Definition returns the pipeline block.
func (p *Pipeline) Definition() *pipeline.Pipeline { return p.chosen }

// Start brings the knowledge up to date and starts the stages, unless both are done. Methods that need the stages call
// Start themselves.
func (p *Pipeline) Start(ctx context.Context) (*run.Run, error) { return p.start(ctx, false) }

// start is Start. input says that the items come from the input.
func (p *Pipeline) start(ctx context.Context, input bool) (*run.Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		return p.ready, nil
	}
	o := p.workspace.options
	var ask func(*pipeline.Stage, int, sdk.Item) bool
	if p.spender != nil {
		ask = p.spender.Ask
	} else if p.limit().IsSet() {
		return nil, optionError("Spend", "%[1]s chooses among the items of a run, and nothing else")
	}
	r, err := run.Open(ctx, p.chosen, run.Options{
		Options: stage.Options{Ballots: o.ballots, Lists: o.Lists, Strict: o.strict, Refuses: p.refuses, Ask: ask, Fitted: p.workspace.fitted(), Scratch: p.workspace.host.Scratch, Pending: p.workspace.pending, Waits: p.workspace.waits, Observe: o.Observe, Began: p.began},
		Launch:  p.launch, Stdin: o.Stdin, Vectors: p.vectors(),
		Knowledge: func(r knowledge.BuildReport) {
			for _, left := range r.Invalid {
				if !errors.As(left.Err, new(*source.RowError)) {
					p.invalid.Add(1)
				}
			}
			p.invalid.Add(int64(r.Unenriched))
			if o.Events.Knowledge != nil {
				o.Events.Knowledge(r)
			}
		},
		Progress: p.workspace.progress, Waiting: o.Events.Locked, MergeLabels: o.MergeLabels, Edition: o.Edition, Samples: p.workspace.samples(),
	})
	if err != nil {
		return nil, p.explain(err)
	}
	if err := p.calibrate(ctx, r, input); err != nil {
		return nil, p.explain(err)
	}
	if p.spender != nil {
		p.spender.Count(p.spent)
	}
	p.relax()
	if o.Edition {
		p.cover(r) // a person who asks a question does not wait for long
	}
	p.ready = r
	return r, nil
}

// Invalid returns how many inputs the stages did not use when they started: excluded documents of the knowledge, rows
// that a stage refused, and passages without their enrichment. Unusable rows, such as rows without a text, are only
// reported.
func (p *Pipeline) Invalid() int { return int(p.invalid.Load()) }

// variant opens the same pipeline with other arguments, to measure it. Both pipelines share what calls to services
// share.
func (p *Pipeline) variant(ctx context.Context, set []pipeline.Override, change func(*Options)) (*Pipeline, error) {
	o := p.workspace.options
	o.Set = overridden(o.Set, set)
	o.strict, o.Events.Warnings, o.Events.Plugins, o.Events.Findings, o.Spend = true, nil, nil, nil, spend.Limit{}
	change(&o)
	return Open(ctx, p.file.Path, o)
}

// overridden returns the overrides before and set. Where both have the same target, set wins.
func overridden(before, set []pipeline.Override) []pipeline.Override {
	return slices.Concat(slices.DeleteFunc(slices.Clone(before), func(old pipeline.Override) bool {
		return slices.ContainsFunc(set, func(s pipeline.Override) bool { return s.Target == old.Target })
	}), set)
}

var errNoBlock = errors.New("the file has no such block any more")

// Reopen opens the index version of a knowledge that a run searched, for reading. It builds nothing; if the version no
// longer exists, it returns an error.
func (p *Pipeline) Reopen(ctx context.Context, of journal.ManifestKnowledge) (*knowledge.Knowledge, error) {
	block, err := p.block(of.Name)
	if err != nil {
		return nil, err
	}
	store, err := stage.LaunchKnowledge(block, p.launch).Store(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	return knowledge.Reopen(ctx, block, store, p.workspace.samples(), of.Collection, of.Content)
}

// Search is Reopen for searching: it also starts the embedder.
func (p *Pipeline) Search(ctx context.Context, of journal.ManifestKnowledge) (*knowledge.Knowledge, error) {
	block, err := p.block(of.Name)
	if err != nil {
		return nil, err
	}
	k, err := knowledge.Open(ctx, block, stage.LaunchKnowledge(block, p.launch), knowledge.Options{Stands: &knowledge.Stand{Collection: of.Collection, Content: of.Content}})
	return k, p.explain(err)
}

func (p *Pipeline) block(name string) (*pipeline.Knowledge, error) {
	at := slices.IndexFunc(p.file.Knowledge, func(b *pipeline.Knowledge) bool { return b.Name == name })
	if at < 0 {
		return nil, errNoBlock
	}
	return p.file.Knowledge[at], nil
}

// Process starts a single stage, by its name in journals, such as "prompt.classify".
func (p *Pipeline) Process(ctx context.Context, name string) (any, *pipeline.Stage, error) {
	s := p.stages()[name]
	if s == nil {
		return nil, nil, errNoBlock
	}
	process, err := p.launch(ctx, stage.LaunchRequest{Stage: s})
	return process, s, p.explain(err)
}

// release is the version of the source code; a build from a tag has the exact version.
const release = "0.2.0"

const module = "github.com/racflow/racflow"

// Version returns the version of racflow, even in a program of another module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return release
}

// Build describes what a program was built from, as far as its binary knows.
type Build struct {
	Version  string   `json:"version"` // of racflow
	Revision string   `json:"revision,omitempty"`
	Time     string   `json:"time,omitempty"` // of the revision, RFC 3339
	Modified bool     `json:"modified"`       // the working tree had uncommitted changes
	Go       string   `json:"go"`
	Platform string   `json:"platform"`          // "linux/amd64"
	Program  string   `json:"program,omitempty"` // the program's module, if it is not racflow
	Modules  []Module `json:"modules,omitempty"`
}

// Module is a module that a program was built with.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// BuildInfo reads the Build of the running binary.
func BuildInfo() Build {
	b := Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Path != module {
		b.Program = info.Main.Path
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, Module{m.Path, m.Version, m.Sum})
	}
	return b
}
