package engine

import (
	"context"
	"iter"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Builtin holds the stages that the running program offers by executing itself. Only Serve makes
// one, so no program can open a pipeline without having called Serve: it cannot start copies of its
// own main function.
type Builtin struct{ stages workspace.Builtin }

// Serve makes a program able to run stages itself. The engine starts the running program once for
// each stage; in such a process Serve does the work of that stage and does not return. In any other
// process it returns at once. Call it before all else, at the latest as the first statement of
// main: each stage process also executes what a program does before that.
func Serve(stages []sdk.Stage) Builtin { return Builtin{workspace.Serve(stages)} }

// Version returns the version of racflow, also in a program of another module.
func Version() string { return workspace.Version() }

// Pipeline is a checked file with one of its pipelines. Its stages start when they are first
// needed, and run until Close. Several goroutines may call its methods at once.
type Pipeline struct{ opened *workspace.Pipeline }

// Open loads and checks a pipeline file. It starts no stage. All work of the pipeline ends with
// ctx; Close it in any case. A mistake in the file is a *DiagnosticsError, an option that does not
// suit the file an *OptionError.
func Open(ctx context.Context, path string, o Options) (*Pipeline, error) {
	p, err := workspace.Open(ctx, path, o.inside())
	if err != nil {
		return nil, own(err)
	}
	return &Pipeline{p}, nil
}

// Close ends all processes of the pipeline.
func (p *Pipeline) Close() { p.opened.Close() }

// Start builds the knowledge and starts the stages. Without Start, the first use does that.
func (p *Pipeline) Start(ctx context.Context) error {
	_, err := p.opened.Start(ctx)
	return own(err)
}

// Item is an item for a pipeline to answer.
type Item struct {
	ID    string // empty: its number, from 1
	Text  string // UTF-8, at most 1 MiB
	Label string // the expected label; empty: unknown
	Meta  sdk.Meta
	Trace sdk.Trace // the trace that the item belongs to, such as sdk.TraceOf(ctx); zero: none
}

// Result is the result of an item, in the form of a JSONL line of racflow run.
type Result = result.Result

// Candidate is an entry retrieved for an item.
type Candidate = result.Candidate

// Run sends items through the pipeline and yields their results in order, each as soon as it is
// there. If items is nil, Run reads the items of Options.Input or of the file. The Result of an item
// that fails has Error set. If the run ends early, an error comes last, without a result, and says
// why; every result before it is complete.
//
// Another goroutine reads items ahead of their results. Breaking off the loop cancels the work in
// progress.
func (p *Pipeline) Run(ctx context.Context, items iter.Seq[Item]) iter.Seq2[Result, error] {
	var inside iter.Seq[workspace.Item]
	if items != nil {
		inside = func(yield func(workspace.Item) bool) {
			for item := range items {
				if !yield(workspace.Item(item)) {
					return
				}
			}
		}
	}
	return func(yield func(Result, error) bool) {
		for r, err := range p.opened.Run(ctx, inside) {
			if !yield(r, own(err)) {
				return
			}
		}
	}
}

// Answer sends one item through the pipeline. If the item fails, Answer returns the error of its
// Result.
func (p *Pipeline) Answer(ctx context.Context, item Item) (Result, error) {
	r, err := p.opened.Answer(ctx, workspace.Item(item))
	return r, own(err)
}

// Retrieve returns the candidates that the last retrieve or rerank stage leaves for an item, best
// first. It asks no voter.
func (p *Pipeline) Retrieve(ctx context.Context, item Item) ([]Candidate, error) {
	found, err := p.opened.Retrieve(ctx, workspace.Item(item))
	return found, own(err)
}

// Plan says what a run would do and cost. It calls no service.
type Plan struct {
	Items   int // in the input; -1: not known before it is read
	Invalid int // unusable rows of the input
	Embed   int // entries of the knowledge that are new or have changed, and must be embedded first
	Calls   []Call
}

// Call is the forecast for a voter that calls a service: what it would use for all items.
type Call struct {
	Stage          string // "sample.llm"
	Items          int
	Requests       int
	Cost, MostCost float64 // expected, and the highest possible; 0: the stage has no price
}

// Plan forecasts a run over the input.
func (p *Pipeline) Plan(ctx context.Context) (Plan, error) {
	found, err := p.opened.Plan(ctx)
	if err != nil {
		return Plan{}, own(err)
	}
	out := Plan{Items: found.Items, Invalid: found.Invalid}
	for _, k := range found.Knowledge {
		out.Embed += k.Added
	}
	if found.Forecast != nil {
		for _, c := range found.Calls() {
			out.Calls = append(out.Calls, Call{"sample." + c.Stage.Name, c.Items, c.Requests, c.Cost, c.MostCost})
		}
	}
	return out, nil
}

// Evaluation holds the figures of a pipeline on the labelled items of its input.
type Evaluation struct {
	Items, Failed, Undecided, Flagged int
	Scored                            int     // items with an expected label
	Accuracy                          float64 // share of the scored items with the right answer
	Low, High                         float64 // the 95 % interval of Accuracy (Wilson)
	MacroF1                           float64 // mean F1 over the labels that were expected or answered
}

// Evaluate measures the pipeline on its input. If a stage has to stop, Evaluate ends with an error
// whose sdk.CodeOf is sdk.CodeStopped: otherwise some figures would be of items without that stage.
func (p *Pipeline) Evaluate(ctx context.Context) (Evaluation, error) {
	found, err := p.opened.Evaluate(ctx, eval.Options{})
	if err != nil {
		return Evaluation{}, own(err)
	}
	r := found.Rows[0].Report
	return Evaluation{r.Items, r.Failed, r.Undecided, r.Flagged, r.Scored, r.Accuracy, r.AccuracyInterval.Low, r.AccuracyInterval.High, r.MacroF1}, nil
}
