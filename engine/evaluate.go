package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/engine/tune"
)

// Evaluation is what Evaluate measured.
type Evaluation struct {
	eval.Comparison
	Incomplete bool // items or rows failed
}

// Evaluate measures the pipeline on its input: once, or each of the variants that are
// asked for. Each is a pipeline of its own, so this one starts no stage. A stage that
// has to stop ends it, with an error whose sdk.CodeOf is sdk.CodeStopped: some figures
// would be of items without that stage.
func (p *Pipeline) Evaluate(ctx context.Context, o eval.Options) (*Evaluation, error) {
	variants, err := o.Variants(p.chosen)
	if err != nil {
		return nil, err
	}
	if len(variants) > 1 && (o.Results != nil || o.Errors > 0) {
		return nil, errors.New("results and single errors are of one pipeline: leave out the sweep or the ablation")
	}
	if len(variants) > 1 && p.InputPath() == "-" {
		return nil, optionError("Input", "the input is read several times, which standard input does not allow: name a file with %[1]s")
	}
	p.glance(ctx)
	out, events := &Evaluation{Comparison: eval.Comparison{Targets: o.Targets()}}, p.workspace.options.Events
	advised := false // of passages that the knowledge does not have
	for i, v := range variants {
		if events.Measuring != nil && v.Name != "" {
			events.Measuring(v.Name)
		}
		r, incomplete, err := p.measure(ctx, v.Set, o, i == 0)
		if err != nil {
			return nil, err
		}
		if found := r.Retrieval; found != nil && found.Absent > 0 && !advised {
			advised = true
			p.advise("%d of %d gold passages are not in the knowledge and count as not found, such as %q", found.Absent, found.Passages, found.Example)
		}
		out.Incomplete = out.Incomplete || incomplete
		out.Rows = append(out.Rows, eval.Row{Set: v.Values, Report: r})
	}
	return out, nil
}

// measure runs the pipeline with some arguments set.
func (p *Pipeline) measure(ctx context.Context, set []pipeline.Override, o eval.Options, first bool) (r eval.Report, incomplete bool, err error) {
	err = p.examine(ctx, set, nil, true, func(v *Examined) error {
		v.opened, p.opened = p.opened, nil
		err := v.measurable()
		if err == nil && first {
			err = v.adviseTuned()
		}
		if err == nil {
			r, incomplete, err = v.Measure(ctx, o)
		}
		switch {
		case err != nil || r.Scored > 0 || r.Retrieval != nil:
		case r.Decided > 0:
			return fmt.Errorf("people have decided about all %d items with a label, which measures nothing: measure on others", r.Decided)
		default:
			return v.nothingKnown("")
		}
		return err
	})
	return r, incomplete, err
}

// Examined is a pipeline that keeps what figures need. It may be asked single items, too: its
// stages start once.
type Examined struct{ *Pipeline }

// Examine opens the pipeline once more, as figures need it, and calls do with it: with some
// arguments set and, unless that is nil, with another input. Its processes end when do returns.
// A stage that has to stop ends what is measured, as with Evaluate. What each voter adds is not
// measured.
func (p *Pipeline) Examine(ctx context.Context, set []pipeline.Override, input *pipeline.Source, do func(*Examined) error) error {
	return p.examine(ctx, set, input, false, do)
}

func (p *Pipeline) examine(ctx context.Context, set []pipeline.Override, input *pipeline.Source, ballots bool, do func(*Examined) error) error {
	v, err := p.variant(ctx, set, func(o *Options) {
		o.Lists, o.ballots = true, ballots
		if input != nil {
			o.Input = ""
		}
	})
	if err != nil {
		return err
	}
	defer v.Close()
	if input != nil {
		chosen := *v.chosen
		chosen.Input, v.chosen = input, &chosen
	}
	return do(&Examined{v})
}

// Check refuses an input on which nothing can be measured, before any voter is asked, and
// advises against one that a file of variables was tuned on.
func (v *Examined) Check() error {
	if err := v.measurable(); err != nil {
		return err
	}
	return v.adviseTuned()
}

// Measure takes the input through the pipeline, and says what the answers and the lists are
// worth, and whether items or rows failed. Where nothing is known about the items, Scored is 0
// and Retrieval nil.
func (v *Examined) Measure(ctx context.Context, o eval.Options) (r eval.Report, incomplete bool, err error) {
	started, err := v.Start(ctx)
	if err != nil {
		return r, false, err
	}
	start := v.launchHere
	if at, err := v.elects(); err == nil && v.chosen.Stages[at].Info.Fits { // what it has learned is there for a process
		start = v.launch
	}
	var elections *reelect.Without
	if v.workspace.options.ballots {
		if elections, err = reelect.NewWithout(ctx, started, v.chosen, start); err != nil {
			return r, false, err
		}
	}
	promised, err := v.promised(started.Labels())
	if err != nil {
		return r, false, err
	}
	passages, confidences, additions := eval.NewPassages(o.Cuts), eval.NewConfidences(started.Labels()...), eval.NewAdditions(eval.NewCounter(started.Labels()...).Of(v.chosen))
	mistakes := eval.NewMistakes(o.Errors, started.Labels()...)
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, one := range batch {
			passages.Add(one)
			confidences.Add(one)
			promised.Add(one)
			mistakes.Add(one)
		}
		if o.Results != nil {
			if err := o.Results(batch); err != nil {
				return err
			}
		}
		if elections == nil {
			return nil
		}
		return elections.Elect(ctx, batch, eval.Scored, additions.Add)
	}, nil)
	if err != nil {
		return r, false, err
	}
	absent, err := v.ready.Absent(ctx, passages.Unseen())
	if err != nil {
		return r, false, err
	}
	r = out.Evaluation
	r.Retrieval, r.Calibration = passages.Report(absent), confidences.Report()
	r.Promised, r.Errors = promised, mistakes.Report()
	if elections != nil {
		additions.Report(r.Voters)
	}
	return r, out.Incomplete(), nil
}

// measurable refuses rows on which nothing can be measured, before any voter is asked:
// that may cost money. Those that can be read only once are refused afterwards.
func (p *Pipeline) measurable() error {
	if !p.rereadable() {
		return nil
	}
	votes := slices.ContainsFunc(p.chosen.Stages, func(s *pipeline.Stage) bool { return s.Enabled && s.Block == "elect" })
	known, unusable := false, ""
	err := p.look(func(row source.Row) bool {
		if row.Err != nil && unusable == "" {
			unusable = fmt.Sprintf("; line %d cannot be used: %v", row.Line, row.Err)
		}
		known = votes && row.Label != "" || slices.ContainsFunc(row.Gold, func(g source.Gold) bool { return g.Grade > 0 })
		return !known
	})
	if err == nil && !known {
		err = p.nothingKnown(terminal.Sanitize(unusable))
	}
	return err
}

func (p *Pipeline) nothingKnown(more string) error {
	return fmt.Errorf("no item of %s has a label to compare answers with, or gold passages to compare lists with: name the column that holds them with label = \"...\" or gold = \"...\" in the input block; labels need an election, and a knowledge that has labels%s", p.InputPath(), more)
}

// adviseTuned advises against an input that a file of variables was tuned on.
func (p *Pipeline) adviseTuned() error {
	files := p.workspace.options.VarFiles
	if len(files) == 0 || !p.rereadable() {
		return nil
	}
	digest, err := tune.Digest(p.InputPath())
	if err != nil {
		return err
	}
	for _, name := range files {
		tuned, err := tune.TunedOn(name)
		if err != nil {
			return err
		}
		if slices.Contains(tuned, digest) {
			p.advise("%s was tuned on %s: figures on these rows are too good to report; measure on others", name, p.InputPath())
		}
	}
	return nil
}

func (p *Pipeline) advise(format string, args ...any) {
	if advice := p.workspace.options.Events.Advice; advice != nil {
		advice(fmt.Sprintf(format, args...))
	}
}
