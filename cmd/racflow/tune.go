package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/tune"
)

func newTune() *cobra.Command {
	t := &tuning{}
	var accuracy, share, cost float64
	c := &cobra.Command{
		Use:   "tune FILE --input VALIDATION",
		Short: "Find the threshold of a cascade and the weights of its voters",
		Long: `Find the values of a pipeline's variables on rows with labels: of x in a rule
when = "margin < var.x" of a sample stage, which sends only the doubtful items to
a language model, and of y in weights = var.y or accuracy = var.y in the config of
the election, a map by the names of the voters.

Every voter is asked about every row once. The curve of what is sent against
accuracy and cost is found by cross-validation: all figures are of rows that the
values were not found on. Without a goal, as little is sent as costs at most half
a point of accuracy against sending everything.

The values found are for run and eval with -var-file. eval warns when it is given
the rows that they were found on.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			for name, goal := range map[string]struct {
				given float64
				goal  **float64
			}{"accuracy": {accuracy, &t.goal.Accuracy}, "share": {share, &t.goal.Share}, "cost": {cost, &t.goal.Cost}} {
				if c.Flags().Changed(name) {
					*goal.goal = &goal.given
				}
			}
			if accuracy < 0 || accuracy > 1 || share < 0 || share > 1 || cost < 0 {
				return errors.New("--accuracy and --share are from 0 to 1, --cost is at least 0")
			}
			if t.folds < 2 {
				return fmt.Errorf("--folds %d: at least 2 are needed to hold rows out", t.folds)
			}
			if t.input.input == "" {
				return errors.New("name the rows to tune on with --input: others than those that you will report on")
			}
			if t.output == "-" {
				t.output = ""
			}
			t.path, t.stderr = args[0], c.ErrOrStderr()
			return t.run(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
	t.flags.register(c)
	t.input.register(c)
	t.flags.calls.register(c)
	c.Flags().Float64Var(&accuracy, "accuracy", 0, "reach this accuracy (0 to 1) with as little sent as that takes")
	c.Flags().Float64Var(&share, "share", 0, "the best accuracy with at most this share of the items sent (0 to 1)")
	c.Flags().Float64Var(&cost, "cost", 0, "the best accuracy at no more than this for a thousand items, by the prices in the file")
	c.MarkFlagsMutuallyExclusive("accuracy", "share", "cost")
	c.Flags().IntVar(&t.folds, "folds", 5, "parts of the rows, each of which is held out once")
	c.Flags().StringVar(&t.variable, "variable", "", "the threshold to find, where the file has several")
	c.Flags().StringVar(&t.output, "output", "", "write the variables to `FILE`.hclvars (- or default: print them)")
	return c
}

// tuning is one call of racflow tune.
type tuning struct {
	flags    fileFlags
	input    inputFlags
	goal     tune.Goal
	folds    int
	variable string
	output   string
	path     string
	stderr   io.Writer
}

func (t *tuning) run(ctx context.Context, stdin io.Reader, stdout io.Writer) (err error) {
	subject, err := t.find(ctx)
	if err != nil {
		return err
	}
	t.flags.set, t.flags.again, t.flags.strict = subject.Everything(), true, true
	var digest string
	var out *output.File
	j, err := newJob(ctx, stdin, &t.flags, &t.input, t.path, func(j *job) (err error) {
		if digest, err = t.warn(j); err != nil {
			return err
		}
		if err := t.check(j); err != nil || t.output == "" {
			return err
		}
		out, err = output.Open(t.output, stdout, j.pipeline.Reads()...)
		return err
	})
	if out != nil {
		defer func() { err = errors.Join(err, out.Close()) }()
	}
	if err != nil {
		return err
	}
	defer j.close()
	task := tune.Task{Subject: subject, Labels: j.ready.Labels(), Folds: t.folds, Goal: t.goal, Cost: j.pipeline.Definition().Cost}
	o, err := j.run(ctx, func(batch []run.Result) error {
		for _, r := range batch {
			if r.Expected != "" {
				task.Results = append(task.Results, r)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	task.Elections = func(ctx context.Context, set []pipeline.Override) (*run.Again, error) {
		return j.pipeline.Again(ctx, append(subject.Everything(), set...))
	}
	found, err := task.Run(ctx)
	if err != nil {
		return err
	}
	if err := report.Tune(stdout, subject, found); err != nil {
		return err
	}
	variables := subject.Variables(found, filepath.Base(t.input.input), digest)
	if out == nil {
		if _, err := fmt.Fprintf(stdout, "\n%s", variables); err != nil {
			return err
		}
		return o.exit()
	}
	if _, err = io.WriteString(out, variables); err == nil {
		err = out.Commit()
	}
	if err != nil {
		return fmt.Errorf("write the variables: %w", err)
	}
	fmt.Fprintf(t.stderr, "variables in %s: racflow run -var-file %s %s\n", t.output, t.output, t.path)
	return o.exit()
}

// find reads the file as it is and finds what of it can be tuned.
func (t *tuning) find(ctx context.Context) (tune.Subject, error) {
	s, err := t.flags.start(ctx, t.path, &t.input, nil)
	if err != nil {
		return tune.Subject{}, err
	}
	defer s.close()
	file, p := s.pipeline.File(), s.pipeline.Definition()
	subject, diags := tune.Find(file, p, t.variable)
	if diags.HasErrors() {
		return subject, &engine.DiagnosticsError{Diagnostics: diags, Sources: file.Sources}
	}
	if t.goal.Cost != nil && len(p.Unpriced()) > 0 {
		return subject, fmt.Errorf("--cost needs to know what is paid: %s has no price; %s", p.Unpriced()[0], pipeline.PriceAdvice)
	}
	return subject, nil
}

// check looks through the rows for what tuning needs of them, before any voter
// is asked: that may cost money.
func (t *tuning) check(j *job) error {
	var texts []string
	err := j.pipeline.Look(func(row source.Row) bool {
		if row.Label != "" {
			texts = append(texts, row.Text)
		}
		return true
	})
	if err != nil {
		return err
	}
	if len(texts) == 0 {
		return fmt.Errorf("no item of %s has a label: name the column that holds it with label = \"...\" in the input block", j.path)
	}
	return tune.Check(texts, t.folds)
}

// warn tells where the figures would be too good, and returns the digest of the
// rows that are tuned on.
func (t *tuning) warn(j *job) (string, error) {
	if !j.pipeline.Rereadable() {
		return "", errors.New("tune notes what it has tuned on, so that nobody measures on it: give it a file, not standard input")
	}
	digest, err := tune.Digest(j.path)
	if err != nil {
		return "", err
	}
	if err := warnTuned(t.stderr, &t.flags, j.path, func() (string, error) { return digest, nil }); err != nil {
		return "", err
	}
	for _, k := range j.pipeline.Definition().Knowledge() {
		if other, err := tune.Digest(k.Source.Path); err == nil && other == digest {
			fmt.Fprintf(t.stderr, "warning: %s is what knowledge %q is made of: every row finds itself there, so the margins are too good; tune on other rows\n", j.path, k.Name)
		}
	}
	return digest, nil
}

// warnTuned warns where an input is what a file of variables was tuned on. digestOf
// gives the input's digest, which takes a reading of all of it.
func warnTuned(w io.Writer, flags *fileFlags, input string, digestOf func() (string, error)) error {
	if len(flags.varFiles) == 0 || input == "-" {
		return nil
	}
	digest, err := digestOf()
	if err != nil {
		return err
	}
	for _, name := range flags.varFiles {
		tuned, err := tune.TunedOn(name)
		if err != nil {
			return err
		}
		for _, on := range tuned {
			if on == digest {
				fmt.Fprintf(w, "warning: %s was tuned on %s: figures on these rows are too good to report; measure on others with --input\n", name, input)
			}
		}
	}
	return nil
}
