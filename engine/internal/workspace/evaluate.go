package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// Evaluation is the result of Evaluate.
type Evaluation struct {
	eval.Comparison
	Incomplete bool // items or rows failed
}

// Evaluate measures the pipeline on its input, or each of the requested variants. Each variant is a pipeline of its
// own, so this one starts no stage. If a stage has to stop, Evaluate returns an error whose sdk.CodeOf is
// sdk.CodeStopped: otherwise some figures would come from items without that stage.
func (p *Pipeline) Evaluate(ctx context.Context, o eval.Options) (*Evaluation, error) {
	variants, err := o.Variants(p.chosen)
	if err != nil {
		return nil, err
	}
	var sets [][]pipeline.Override
	for _, v := range variants {
		sets = append(sets, v.Set)
	}
	if err := p.workspace.trust(p.file, sets...); err != nil {
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
	if s := p.folds; s != nil && s.unused > 0 {
		p.advise("%s of the knowledge that cannot be used left out, such as %s", terminal.Plural(s.unused, "row"), s.invalid[0])
	}
	advised := false // about gold passages that are not in the knowledge
	for i, v := range variants {
		if events.Measuring != nil && v.Name != "" {
			events.Measuring(v.Name)
		}
		r, incomplete, err := p.measure(ctx, v.Set, o, i == 0, func(to *Options) { to.ballots = true })
		if err != nil {
			return nil, err
		}
		if found := r.Retrieval; found != nil && found.Absent > 0 && !advised {
			advised = true
			p.advise("%d of %d gold passages are not in the knowledge and count as not found, such as %q; a passage is named by its entry's id, as in guide.md#0, or by the document and words that stand in it, as in guide.md\"words\"", found.Absent, found.Passages, found.Example)
		}
		out.Incomplete = out.Incomplete || incomplete
		out.Rows = append(out.Rows, eval.Row{Set: v.Values, Report: r})
	}
	return out, nil
}

// measure runs the pipeline with some arguments set: once, or once for each fold, with one report about all folds.
// first also gives the advice of adviseTuned.
func (p *Pipeline) measure(ctx context.Context, set []pipeline.Override, o eval.Options, first bool, change func(*Options)) (r eval.Report, incomplete bool, err error) {
	events, folds := p.workspace.options.Events, p.workspace.options.Folds
	var all figures
	for fold := min(1, folds); fold <= folds; fold++ {
		if fold > 0 && events.Measuring != nil {
			events.Measuring(fmt.Sprintf("fold %d of %d", fold, folds))
		}
		ofFold := func(to *Options) {
			change(to)
			if to.fold = fold; fold > 1 {
				to.Events.Begun, to.Events.Knowledge = nil, nil // the first fold has reported both
			}
		}
		err := p.examine(ctx, set, nil, ofFold, func(v *Pipeline) error {
			v.opened, p.opened = p.opened, nil // an input that can be read only once may be open
			if fold > 0 && len(v.chosen.Input.Rows) == 0 {
				return nil
			}
			err := v.measurable()
			if err == nil && first && fold <= 1 {
				err = v.adviseTuned()
			}
			if err == nil {
				var lacks bool
				r, lacks, err = v.gather(ctx, o, &all)
				incomplete = incomplete || lacks
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
		if err != nil {
			return r, false, err
		}
	}
	return r, incomplete, nil
}

// Examine opens the pipeline again and calls do with it, to measure what an expect block expects. The opened pipeline
// has the values that the block gives to variables and, unless input is nil, that input. Its processes end when do
// returns. If a stage has to stop, the measurement ends, as in Evaluate. The pipeline keeps what figures need, and can
// also answer single items, so its stages start only once. Examine does not measure what each voter adds.
func (p *Pipeline) Examine(ctx context.Context, set []pipeline.Override, input *pipeline.Source, do func(*Pipeline) error) error {
	return p.examine(ctx, nil, input, func(o *Options) { o.expected = append([]pipeline.Override{}, set...) }, do) // not nil: the blocks are asked about already
}

func (p *Pipeline) examine(ctx context.Context, set []pipeline.Override, input *pipeline.Source, change func(*Options), do func(*Pipeline) error) (err error) {
	v, err := p.variant(ctx, set, func(o *Options) {
		o.Lists = true
		if input != nil {
			o.Input = ""
		}
		change(o)
	})
	if err != nil {
		return err
	}
	if v.workspace.options.fold > 0 {
		defer func() { err = errors.Join(err, p.discard(ctx, v.folds)) }()
	}
	defer v.Close()
	if input != nil {
		chosen := *v.chosen
		chosen.Input, v.chosen = input, &chosen
	}
	return do(v)
}

// Check rejects an input that allows no measurement, before any voter is asked. It advises against an input on which a
// file of variables was tuned.
func (p *Pipeline) Check() error {
	if err := p.measurable(); err != nil {
		return err
	}
	return p.adviseTuned()
}

// Measure runs the pipeline over the input. It reports the quality of answers and lists, and whether items or rows
// failed. If nothing is known about the items, Scored is 0 and Retrieval is nil.
func (p *Pipeline) Measure(ctx context.Context, o eval.Options) (r eval.Report, incomplete bool, err error) {
	return p.gather(ctx, o, &figures{})
}

// figures holds the counts of Measure beside Work's. They cover a run, or several runs that count as one.
type figures struct {
	sums
	passages    *eval.Passages
	confidences *eval.Confidences
	additions   *eval.Additions
	promised    *eval.Promised
	mistakes    *eval.Mistakes
}

// begin prepares to count. labels are the labels of the knowledge.
func (f *figures) begin(v *Pipeline, o eval.Options, labels []string) (err error) {
	f.counter = eval.NewCounter(labels...).Of(v.chosen)
	f.passages, f.confidences, f.additions = eval.NewPassages(o.Cuts), eval.NewConfidences(labels...), eval.NewAdditions(eval.NewCounter(labels...).Of(v.chosen))
	f.mistakes = eval.NewMistakes(o.Errors, labels...)
	f.promised, err = v.promised(labels)
	return err
}

// add counts results. elections is nil if no election is repeated.
func (f *figures) add(ctx context.Context, batch []outcome.Result, elections *tune.ElectionsWithout) error {
	for _, one := range batch {
		f.passages.Add(one)
		f.confidences.Add(one)
		f.promised.Add(one)
		f.mistakes.Add(one)
	}
	if elections == nil {
		return nil
	}
	return elections.Elect(ctx, batch, eval.Scored, f.additions.Add)
}

// gather is Measure, but adds to the figures counted before.
func (p *Pipeline) gather(ctx context.Context, o eval.Options, f *figures) (r eval.Report, incomplete bool, err error) {
	started, err := p.start(ctx, true)
	if err != nil {
		return r, false, err
	}
	start := p.launchHere
	if at, err := p.elects(); err == nil && p.chosen.Stages[at].Info.Fits { // a process can use what it has learned
		start = p.launch
	}
	var elections *tune.ElectionsWithout
	if p.workspace.options.ballots {
		if elections, err = tune.NewElectionsWithout(ctx, started, p.chosen, start); err != nil {
			return r, false, err
		}
	}
	labels := started.Labels()
	if p.folds != nil {
		labels, p.pooled = p.folds.labels, &f.sums
	}
	if f.counter == nil {
		if err := f.begin(p, o, labels); err != nil {
			return r, false, err
		}
	}
	out, err := p.Work(ctx, func(batch []outcome.Result) error {
		if o.Results != nil {
			if err := o.Results(batch); err != nil {
				return err
			}
		}
		return f.add(ctx, batch, elections)
	}, nil)
	if err != nil {
		return r, false, err
	}
	absent, err := p.ready.Absent(ctx, f.passages.Unseen())
	if err != nil {
		return r, false, err
	}
	r = out.Evaluation
	r.Retrieval, r.Calibration = f.passages.Report(absent), f.confidences.Report()
	r.Promised, r.Errors, r.Folds = f.promised, f.mistakes.Report(), p.workspace.options.Folds
	if elections != nil {
		f.additions.Report(r.Voters)
	}
	names := started.Graph().Described()
	for i, l := range r.Labels {
		r.Labels[i].Name = names[l.Label].Name
	}
	return r, out.Incomplete(), nil
}

// measurable rejects rows that allow no measurement, before any voter is asked, since asking may cost money. Rows that
// can be read only once are rejected afterwards.
func (p *Pipeline) measurable() error {
	if !p.rereadable() {
		return nil
	}
	votes := slices.ContainsFunc(p.chosen.Stages, func(s *pipeline.Stage) bool { return s.Enabled && s.Block == "elect" })
	known, unusable := false, ""
	err := p.eachRow(func(row source.Row) bool {
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

// adviseTuned warns about an input on which a file of variables was tuned.
func (p *Pipeline) adviseTuned() error {
	files := p.workspace.options.VarFiles
	if len(files) == 0 || !p.rereadable() {
		return nil
	}
	digest, err := source.Digest(p.InputPath())
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

// subject finds what to tune, and the flag rule if a promise is wanted. It tunes only the flag rule's threshold if
// Options.Threshold names that threshold, or if nothing else can be tuned.
func (p *Pipeline) subject(o tune.Options) (tune.Subject, tune.FlagRule, hcl.Diagnostics) {
	s, diags := tune.Find(p.file, p.chosen, o.Threshold)
	flag, missed := tune.FindFlagRule(p.chosen)
	named := o.Threshold != "" && o.Threshold == flag.Variable
	switch {
	case o.Promise == nil && named && diags.HasErrors():
		return s, flag, flag.Diagnostic(p.chosen, "is found for an accuracy that is to be guaranteed, such as --accuracy 0.95")
	case o.Promise != nil && missed.HasErrors():
		return s, flag, missed
	case o.Promise != nil && s.Compares(flag.Variable):
		return s, flag, flag.Diagnostic(p.chosen, "is also that of a when rule, so it cannot serve a guarantee: give the flag rule a variable of its own")
	case o.Promise != nil && (named || o.Threshold == "" && s.Nothing()):
		return tune.Subject{}, flag, nil
	}
	return s, flag, diags
}

// checkRows splits rows with these texts into folds, without the rows reserved for a promise. It returns an error if
// there are too few rows.
func checkRows(texts []string, o tune.Options, split bool) error {
	var tuned []string
	reserved := map[string]bool{}
	for _, text := range texts {
		if o.Promise != nil && (!split || tune.ReservedForPromise(text)) {
			reserved[text] = true
		} else {
			tuned = append(tuned, text)
		}
	}
	if o.Promise != nil {
		if err := o.Promise.Check(len(reserved)); err != nil {
			return err
		}
	}
	if o.Promise != nil && !split {
		return nil
	}
	_, err := tune.SplitFolds(tuned, o.Folds)
	return err
}

// promise finds the threshold of the flag rule on rows that are used for nothing else. A missing threshold is an error
// only if nothing else was found.
func (t *Tuned) promise(flag tune.FlagRule, rows []outcome.Result, labels []string, g eval.PromiseGoal, split bool) error {
	found, err := flag.Promise(rows, labels, g)
	switch {
	case err == nil:
		found.Split = split
		t.Flag, t.Variables = &found, t.Variables+found.Note()
	case !split:
		return err
	default:
		t.Unpromised = fmt.Errorf("%w (half of the rows, on which no other value was found; --variable %s finds this one alone, on all)", err, flag.Variable)
	}
	return nil
}

// promised returns the promise in the files of variables, for measuring. It returns nil if they have no promise, or if
// the threshold's variable now has another value.
func (p *Pipeline) promised(labels []string) (*eval.Promised, error) {
	for _, name := range slices.Backward(p.workspace.options.VarFiles) {
		n, ok, err := tune.ReadPromise(name)
		if err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		for _, v := range p.file.Variables {
			if value, err := strconv.ParseFloat(v.Value, 64); v.Name == n.Variable && err == nil && value == n.Value {
				return eval.NewPromised(n.Goal.Accuracy, n.Goal.Confidence, n.Caught, n.Unknown, labels...), nil
			}
		}
		return nil, nil
	}
	return nil, nil
}
