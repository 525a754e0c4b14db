package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/tune"
)

// Tuned is what Tune found.
type Tuned struct {
	Subject    tune.Subject
	Outcome    tune.Outcome
	Variables  string // a file of variables with the values that were found
	Incomplete bool   // items or rows failed
}

// Tune finds values of the pipeline's variables on Options.Input, whose items need
// labels. Every voter is asked about every item once, by a pipeline of its own: this
// one starts no stage. Errors are as those of Evaluate.
func (p *Pipeline) Tune(ctx context.Context, o tune.Options) (*Tuned, error) {
	if p.workspace.options.Input == "" {
		return nil, optionError("Input", "name the rows to tune on with %[1]s: others than those that you will report on")
	}
	subject, diags := tune.Find(p.file, p.chosen, o.Threshold)
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, p.file.Sources}
	}
	if unpriced := p.chosen.Unpriced(); o.Goal.Cost != nil && len(unpriced) > 0 {
		return nil, optionError("Goal.Cost", "%[1]s needs to know what is paid: %[2]s has no price; %[3]s", unpriced[0], pipeline.PriceAdvice)
	}
	digest, err := p.tunable(o.Folds)
	if err != nil {
		return nil, err
	}
	v, err := p.variant(ctx, subject.Everything(), func(o *Options) { o.ballots = true })
	if err != nil {
		return nil, err
	}
	defer v.Close()
	task := tune.Task{Subject: subject, Options: o, Cost: p.chosen.Cost}
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, r := range batch {
			if r.Expected != "" {
				task.Results = append(task.Results, r)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	task.Labels, task.Elections = out.Labels, v.elections
	found, err := task.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &Tuned{subject, found, subject.Variables(found, filepath.Base(p.InputPath()), digest), out.Incomplete()}, nil
}

// tunable refuses rows that cannot be tuned on, before any voter is asked: that may
// cost money. It returns their digest.
func (p *Pipeline) tunable(folds int) (digest string, err error) {
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
		err = tune.Check(texts, folds)
	}
	return digest, err
}

// elections starts the pipeline's election with arguments set, to hold elections of
// the run again. Many are needed, each for a moment, so a built-in one runs in this
// process, by the same code.
func (p *Pipeline) elections(ctx context.Context, set []pipeline.Override) (*reelect.Election, error) {
	o := p.workspace.options
	file, diags, err := p.workspace.read(p.file.Path, o.Input, overridden(o.Set, set))
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, &DiagnosticsError{diags, file.Sources}
	}
	again, err := p.workspace.Choose(file)
	if err != nil {
		return nil, err
	}
	return reelect.New(ctx, p.ready, again, p.launchHere)
}
