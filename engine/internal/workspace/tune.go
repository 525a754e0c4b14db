package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"

	"github.com/racflow/racflow/sdk"
)

// Tuned is the result of Tune.
type Tuned struct {
	Subject    tune.Subject
	Outcome    tune.Outcome
	Flag       *tune.FlagPromise // nil: no promise was wanted, or none is possible
	Unpromised error             // why no promise is possible, if other values were found; Variables has these
	Variables  string            // the text of a file of variables with the found values
	Incomplete bool              // items or rows failed
}

// Tune finds values of the pipeline's variables. It tunes on Options.Input, whose items need labels, or on
// rows of the knowledge (tune.Options.Rows). It asks every voter about every item once, in a pipeline of
// its own; this pipeline starts no stage. Its errors are like Evaluate's.
func (p *Pipeline) Tune(ctx context.Context, o tune.Options) (*Tuned, error) {
	if unpriced := p.chosen.Unpriced(); o.Goal.Cost != nil && len(unpriced) > 0 {
		return nil, optionError("Goal.Cost", "%[1]s needs to know what is paid: %[2]s has no price; %[3]s", unpriced[0], pipeline.PriceAdvice)
	}
	subject, flag, diags := p.subject(o)
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, p.file.Sources}
	}
	if o.Rows > 0 {
		return p.tuneHeldOut(ctx, o, subject)
	}
	if p.workspace.options.Input == "" {
		return nil, optionError("Input", "name the rows to tune on with %[1]s: labelled rows that are not in the knowledge, and not those that you will report on")
	}
	split := o.Promise != nil && !subject.Nothing()
	digest, err := p.tunable(o, split)
	if err != nil {
		return nil, err
	}
	if o.Promise != nil {
		if err := p.unseen(ctx); err != nil {
			return nil, err
		}
	}
	v, err := p.variant(ctx, subject.Everything(), func(o *Options) { o.ballots, o.uncalibrated = !subject.Nothing(), true })
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var results, reserved []outcome.Result // rows reserved for the promise
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, r := range batch {
			switch {
			case r.Expected == "" || r.Decided != nil:
			case o.Promise != nil && (!split || tune.ReservedForPromise(r.Text)):
				reserved = append(reserved, r)
			default:
				results = append(results, r)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	items, found := len(results)+len(reserved), &Tuned{Subject: subject, Incomplete: out.Incomplete()}
	if !subject.Nothing() {
		if reserved, err = found.run(ctx, v, v.ready, o, results, reserved); err != nil {
			return nil, err
		}
	}
	found.Variables = found.write(items, p.InputPath(), digest)
	if o.Promise == nil {
		return found, nil
	}
	return found, found.promise(flag, reserved, out.Labels, *o.Promise, split)
}

// unseen refuses a promise on rows if more than 1 % of them are in the knowledge: the promise would not
// hold for other rows.
func (p *Pipeline) unseen(ctx context.Context) error {
	_, count, labelled, err := p.Leaked(ctx)
	if err != nil || 100*count <= labelled { // Leaked does not compare documents
		return nil //nolint:nilerr // what cannot be read is reported by those who need it
	}
	return optionError("Input", "the knowledge has %[2]d of the %[3]d rows of %[1]s, so what is guaranteed on them would not hold for others: give rows that it does not have", count, labelled)
}

// tuneHeldOut tunes on rows of the knowledge. A search for a row excludes the row itself.
func (p *Pipeline) tuneHeldOut(ctx context.Context, o tune.Options, subject tune.Subject) (*Tuned, error) {
	events := p.workspace.options.Events
	if o.Promise != nil {
		return nil, optionError("Promise", "%[1]s needs rows like those that will come, with labels: rows of the knowledge are none")
	}
	if p.workspace.options.Input != "" {
		return nil, optionError("Rows", "%[1]s tunes on rows of the knowledge: leave the input out, or tune on that")
	}
	v, err := p.variant(ctx, subject.Everything(), func(o *Options) { o.ballots, o.uncalibrated = true, true })
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, err := v.Start(ctx)
	if err != nil {
		return nil, err
	}
	if events.Begun != nil {
		events.Begun(Begun{Pipeline: v.chosen})
	}
	var results []outcome.Result
	var counted tally
	held, totals, done, err := r.HeldOut(ctx, o.Rows, v.launch, func(batch []outcome.Result) error {
		results = append(results, batch...)
		if events.Answered != nil {
			events.Answered(batch)
		}
		v.workspace.progress(counted.add(batch, Progress{Doing: "answering", Total: int64(o.Rows)}))
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer done()
	found := &Tuned{Subject: subject, Incomplete: totals.Failed > 0 || totals.Left > 0}
	if _, err := found.run(ctx, v, held, o, results, nil); err != nil {
		return nil, err
	}
	last := len(v.chosen.Knowledge()) - 1
	block := v.chosen.Knowledge()[last]
	path := block.Main().Path
	var digest string
	if block.Attached() { // the collection's sample replaces a file
		path = block.Collection()
		_, digest, _ = r.Graph().Knowledge()[last].Learnt()
	} else if digest, err = source.Digest(path); err != nil {
		return nil, err
	}
	found.Variables = found.write(len(results), path, digest)
	return found, nil
}

// run finds the threshold and the weights, on results of a run that asked every voter and keeps ballots.
// It returns the other results as they are with the found values.
func (t *Tuned) run(ctx context.Context, v *Pipeline, held *run.Run, o tune.Options, results, others []outcome.Result) ([]outcome.Result, error) {
	task := tune.Task{
		Subject: t.Subject, Options: o, Results: results, Cost: v.chosen.Cost, Progress: v.workspace.tuning,
		Labels: held.Labels(), Fit: v.fit(held, &t.Subject), Election: v.election(held, &t.Subject),
	}
	var err error
	if t.Outcome, err = task.Run(ctx); err != nil || len(others) == 0 {
		return nil, err
	}
	return task.Hold(ctx, t.Outcome, others)
}

// write returns a file of variables with the values found on a file's items.
func (t *Tuned) write(items int, input, digest string) string {
	return t.Subject.Variables(t.Outcome, items, filepath.Base(input), digest)
}

// tunable rejects rows that cannot be used for tuning, before any voter is asked, since asking may cost
// money. It returns the digest of the other rows.
func (p *Pipeline) tunable(o tune.Options, split bool) (digest string, err error) {
	if !p.rereadable() {
		return "", errors.New("tune notes what it has tuned on, so that nobody measures on it: give it a file, not standard input")
	}
	if err := p.adviseTuned(); err != nil {
		return "", err
	}
	if digest, err = source.Digest(p.InputPath()); err != nil {
		return "", err
	}
	for _, k := range p.chosen.Knowledge() {
		for _, s := range k.Sources {
			if other, err := source.Digest(s.Path); err == nil && other == digest && s.Form.Shares(p.input().Form) {
				p.advise("%s is what knowledge %q is made of: every row finds itself there, so the margins are too good; tune on other rows", p.InputPath(), k.Name)
			}
		}
	}
	var texts []string
	decided := p.decided()
	err = p.eachRow(func(row source.Row) bool {
		if _, is := decided.Find(row.Text); !is && row.Label != "" { // a decided row measures nothing
			texts = append(texts, row.Text)
		}
		return true
	})
	if err != nil {
		return "", err
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("no item of %s has a label: name the column that holds it with label = \"...\" in the input block", p.InputPath())
	}
	return digest, checkRows(texts, o, split)
}

// election returns a function that starts the pipeline's election with given weights, to repeat elections
// of the run. held keeps the ballots.
func (p *Pipeline) election(held *run.Run, s *tune.Subject) func(context.Context, tune.Found) (*tune.Election, error) {
	return func(ctx context.Context, found tune.Found) (*tune.Election, error) {
		again, start := p.chosen, p.launchHere
		if found != nil {
			start = p.openHere
			at, err := p.elects()
			if err != nil {
				return nil, err
			}
			weighed, err := s.Weighed(p.chosen.Stages[at], found)
			if err != nil {
				return nil, err
			}
			changed := *p.chosen
			changed.Stages = slices.Clone(p.chosen.Stages)
			changed.Stages[at], again = weighed, &changed
		}
		return tune.NewElection(ctx, held, again, start)
	}
}

// elects returns the index of the election among the stages.
func (p *Pipeline) elects() (int, error) {
	for i, s := range slices.Backward(p.chosen.Stages) {
		if s.Enabled && s.Block == "elect" {
			return i, nil
		}
	}
	return 0, errors.New("the pipeline has no election")
}

// fit returns a function that fits a learning election without the file's weights. The function returns
// the values that the election chose, such as its weights.
func (p *Pipeline) fit(held *run.Run, s *tune.Subject) func(context.Context, iter.Seq2[[]sdk.TrainingRow, error]) (tune.Found, error) {
	return func(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) (tune.Found, error) {
		at, err := p.elects()
		if err != nil {
			return nil, err
		}
		unweighed, err := s.Weighed(p.chosen.Stages[at], nil)
		if err != nil {
			return nil, err
		}
		dir, err := p.workspace.host.Scratch()
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it holds nothing but weights that were read
		// A process resolves values only when it opens, so it is opened again.
		do := func(do func(process any) error) error {
			process, err := p.openHere(ctx, stage.LaunchRequest{Stage: unweighed, StateDir: dir})
			if err != nil {
				return err
			}
			err = do(process)
			if c, ok := process.(io.Closer); ok {
				_ = c.Close()
			}
			return err
		}
		err = do(func(process any) error {
			f, ok := process.(sdk.Fitter)
			if !ok {
				return errors.New("it learns nothing")
			}
			return f.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
				if alone := held.Graph().WithoutExample(); len(alone) > 0 && !yield(alone, nil) {
					return
				}
				rows(yield)
			})
		})
		var found tune.Found
		if err == nil {
			err = do(func(process any) error {
				if r, ok := process.(sdk.Resolver); ok {
					found = r.Resolved()
				}
				if found[s.Argument] == nil {
					return fmt.Errorf("it has resolved no %s", s.Argument)
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("elect.%s: learn from rows with labels: %w", unweighed.Name, err)
		}
		return found, nil
	}
}
