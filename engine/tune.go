package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/tune"
	"github.com/racflow/racflow/engine/tune/flagging"
	"github.com/racflow/racflow/sdk"
)

// Tuned is what Tune found.
type Tuned struct {
	Subject    tune.Subject
	Outcome    tune.Outcome
	Flag       *flagging.Found // nil: no promise was asked for, or none can be made
	Unpromised error           // says why not, where other values were found; they are in Variables
	Variables  string          // a file of variables with the values that were found
	Incomplete bool            // items or rows failed
}

// Tune finds values of the pipeline's variables on Options.Input, whose items need
// labels. Every voter is asked about every item once, by a pipeline of its own: this
// one starts no stage. Errors are as those of Evaluate.
func (p *Pipeline) Tune(ctx context.Context, o tune.Options) (*Tuned, error) {
	if p.workspace.options.Input == "" {
		return nil, optionError("Input", "name the rows to tune on with %[1]s: others than those that you will report on")
	}
	subject, flag, diags := p.subject(o)
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, p.file.Sources}
	}
	split := o.Promise != nil && !subject.Nothing()
	if unpriced := p.chosen.Unpriced(); o.Goal.Cost != nil && len(unpriced) > 0 {
		return nil, optionError("Goal.Cost", "%[1]s needs to know what is paid: %[2]s has no price; %[3]s", unpriced[0], pipeline.PriceAdvice)
	}
	digest, err := p.tunable(func(texts []string) error {
		return checkRows(texts, o, split)
	})
	if err != nil {
		return nil, err
	}
	v, err := p.variant(ctx, subject.Everything(), func(o *Options) { o.ballots = !subject.Nothing() })
	if err != nil {
		return nil, err
	}
	defer v.Close()
	task := tune.Task{Subject: subject, Options: o, Cost: p.chosen.Cost, Progress: p.workspace.options.Events.Tuning}
	var reserved []outcome.Result // for the promise
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, r := range batch {
			switch {
			case r.Expected == "":
			case subject.Nothing() || split && flagging.Reserved(r.Text):
				reserved = append(reserved, r)
			default:
				task.Results = append(task.Results, r)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	task.Labels, task.Fit = out.Labels, v.fit(&subject)
	task.Election = v.election(&subject)
	t := &Tuned{Subject: subject, Incomplete: out.Incomplete()}
	if !subject.Nothing() {
		if t.Outcome, err = task.Run(ctx); err != nil {
			return nil, err
		}
		if reserved, err = task.Hold(ctx, t.Outcome, reserved); err != nil {
			return nil, err
		}
	}
	file := filepath.Base(p.InputPath())
	t.Variables = subject.Variables(t.Outcome, len(task.Results)+len(reserved), file, digest)
	if o.Promise == nil {
		return t, nil
	}
	return t, t.promise(flag, reserved, out.Labels, *o.Promise, split)
}

// tunable refuses rows that cannot be tuned on, before any voter is asked: that may
// cost money. It returns their digest.
func (p *Pipeline) tunable(check func(texts []string) error) (digest string, err error) {
	if !p.rereadable() {
		return "", errors.New("tune notes what it has tuned on, so that nobody measures on it: give it a file, not standard input")
	}
	if err := p.adviseTuned(); err != nil {
		return "", err
	}
	if digest, err = tune.Digest(p.InputPath()); err != nil {
		return "", err
	}
	for _, k := range p.chosen.Knowledge() {
		if other, err := tune.Digest(k.Source.Path); err == nil && other == digest {
			p.advise("%s is what knowledge %q is made of: every row finds itself there, so the margins are too good; tune on other rows", p.InputPath(), k.Name)
		}
	}
	var texts []string
	err = p.look(func(row source.Row) bool {
		if row.Label != "" {
			texts = append(texts, row.Text)
		}
		return true
	})
	if err == nil && len(texts) == 0 {
		err = fmt.Errorf("no item of %s has a label: name the column that holds it with label = \"...\" in the input block", p.InputPath())
	}
	if err == nil {
		err = check(texts)
	}
	return digest, err
}

// election starts the pipeline's election with weights, to hold elections of the run again.
// Many are needed, each for a moment, so a built-in one runs in this process, by the same
// code, unless it has to learn its weights first.
func (p *Pipeline) election(s *tune.Subject) func(context.Context, tune.Found) (*reelect.Election, error) {
	return func(ctx context.Context, found tune.Found) (*reelect.Election, error) {
		again, start := p.chosen, p.launchHere
		switch {
		case found != nil:
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
		case s.Learns:
			start = p.launch
		}
		return reelect.New(ctx, p.ready, again, start)
	}
}

// elects is the position of the election among the stages.
func (p *Pipeline) elects() (int, error) {
	for i, s := range slices.Backward(p.chosen.Stages) {
		if s.Enabled && s.Block == "elect" {
			return i, nil
		}
	}
	return 0, errors.New("the pipeline has no election")
}

// fit returns what fits an election that learns, without the weights of the file, and
// returns what it has resolved: its weights, for one.
func (p *Pipeline) fit(s *tune.Subject) func(context.Context, iter.Seq2[[]sdk.TrainingRow, error]) (tune.Found, error) {
	return func(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) (tune.Found, error) {
		at, err := p.elects()
		if err != nil {
			return nil, err
		}
		unweighed, err := s.Weighed(p.chosen.Stages[at], nil)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(p.workspace.state, "tune-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it holds nothing but weights that were read
		// A process says what it has resolved when it opens, so it is opened again.
		do := func(do func(process any) error) error {
			process, err := p.launchHere(ctx, launch.Request{Stage: unweighed, StateDir: dir})
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
			return f.Fit(ctx, rows)
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
