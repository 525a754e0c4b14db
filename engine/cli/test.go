package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
)

var testLong = `An expect block in a pipeline has a rule that compares figures, which are measured on the pipeline's input or on
one that the block names:

    expect "accuracy" { rule = "accuracy >= 0.92" }

` + figureTable() + `
Each rule is printed with what was found, its 95 % interval and, where it does not hold, what would be needed. A
figure that cannot be measured fails its rule. --baseline RUN fails where the run answered more items right,
beyond chance (McNemar's exact test, p < 0.05). --junit FILE writes what CI systems show, - to standard output.

Exit code 0: all holds; 4: something does not; 3: all holds, and items or rows failed; 1: something could not be
tested, such as a file that expects nothing.`

func newTest() *cobra.Command {
	var flags fileFlags
	var t tester
	c := &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Test whether what pipeline files expect holds",
		Long:  testLong,
		Example: `  racflow test pipelines/intent.hcl
  racflow test --baseline newest pipelines/intent.hcl
  racflow test --junit test.xml pipelines/intent.hcl pipelines/contextual.hcl`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return takeFile(c)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if t.asJSON && disk.IsStdout(t.junit, c.OutOrStdout()) {
				return errors.New("--json and --junit - both write to standard output: name a file with --junit")
			}
			return t.run(c, &flags, args)
		},
	}
	flags.register(c)
	flags.registerCalls(c)
	c.Flags().StringArrayVar(&t.baselines, "baseline", nil, "compare with `RUN`, and fail where the answers are worse by more than chance explains (may be repeated, for several pipelines)")
	c.Flags().StringVar(&t.junit, "junit", "", "write JUnit's XML to `FILE` (- is standard output)")
	c.Flags().BoolVar(&t.asJSON, "json", false, "print what was found as JSON")
	return c
}

// figureTable lists the figures that rules can name.
func figureTable() string {
	var b strings.Builder
	for _, n := range rule.Described(rule.Expectation) {
		writeFigure(&b, n.Name, n.Doc)
	}
	for _, f := range rule.Functions(rule.Expectation) {
		if f.Form != "" {
			writeFigure(&b, f.Form, f.Doc)
		}
	}
	return b.String()
}

func writeFigure(b *strings.Builder, name, doc string) {
	const width = 80
	fmt.Fprintf(b, "  %s", name)
	column := width // the description begins on its own line
	for word := range strings.FieldsSeq(doc) {
		if column+1+len(word) > width {
			b.WriteString("\n     ")
			column = 5
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n")
}

// tester holds the flags and results of a test of files.
type tester struct {
	baselines []string
	junit     string
	asJSON    bool

	open    []*journal.Journal
	used    []bool // of open
	reports []*expect.Report
}

func (t *tester) run(c *cobra.Command, flags *fileFlags, files []string) (err error) {
	for _, name := range t.baselines {
		kept, id, err := runOf(flags.state, name)
		if err != nil {
			return err
		}
		j, err := kept.Open(id)
		if err != nil {
			return err
		}
		defer j.Close(nil) //nolint:errcheck // it was only read
		reportChanged(c.ErrOrStderr(), j)
		t.open = append(t.open, j)
	}
	t.used = make([]bool, len(t.open))
	var to *disk.Output
	if t.junit != "" {
		if to, err = disk.OpenOutput(t.junit, terminal.Data(c.OutOrStdout()), files...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, to.Close()) }()
	}
	for _, path := range files {
		if err := t.file(c, *flags, path); err != nil {
			return err
		}
	}
	if i := slices.Index(t.used, false); i >= 0 {
		return fmt.Errorf("run %s is of pipeline %q, which was not tested", t.open[i].ID(), t.open[i].Manifest.Pipeline)
	}
	if to != nil {
		if err := errors.Join(report.JUnit(to, t.reports), to.Commit()); err != nil {
			return fmt.Errorf("write %s: %w", t.junit, err)
		}
	}
	out := c.OutOrStdout()
	switch {
	case t.asJSON:
		err = writeJSON(out, testedJSON{t.holds(), t.reports})
	case !disk.IsStdout(t.junit, out):
		err = report.Expected(out, t.reports)
	}
	return errors.Join(err, t.exit())
}

type testedJSON struct {
	Holds     bool             `json:"holds"`
	Pipelines []*expect.Report `json:"pipelines"`
}

func (t *tester) holds() bool {
	return !slices.ContainsFunc(t.reports, func(r *expect.Report) bool { return !r.Holds() })
}

func (t *tester) exit() error {
	switch {
	case !t.holds():
		return &exitError{code: exitUnexpected}
	case slices.ContainsFunc(t.reports, func(r *expect.Report) bool { return r.Incomplete }):
		return &exitError{code: exitItemsFailed}
	}
	return nil
}

// file tests the pipelines of a file that have expectations.
func (t *tester) file(c *cobra.Command, flags fileFlags, path string) error {
	var names []string
	err := flags.files(c, func(a *app) error {
		file, err := a.Load(path)
		if err != nil {
			return err
		}
		for _, p := range file.Pipelines {
			if flags.pipeline != "" && p.Name != flags.pipeline || len(p.Expects) == 0 && t.baseline(p.Name) < 0 {
				continue
			}
			names = append(names, p.Name)
			if !slices.ContainsFunc(p.Expects, func(e *pipeline.Expect) bool { return e.Enabled }) && t.baseline(p.Name) < 0 {
				return fmt.Errorf("%s: pipeline %q expects nothing: all of its expect blocks are off", path, p.Name)
			}
		}
		if len(names) > 0 {
			return nil
		}
		if _, err := a.Choose(file); err != nil && flags.pipeline != "" {
			return err
		}
		return fmt.Errorf(`%s expects nothing: write expect "accuracy" { rule = "accuracy >= 0.9" } into a pipeline, with what you want to rely on`, path)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		flags.pipeline = name
		if err := t.pipeline(c, flags, path); err != nil {
			return err
		}
	}
	return nil
}

// baseline returns the index of the first unused baseline run of a pipeline; -1: there is none.
func (t *tester) baseline(pipeline string) int {
	for i, j := range t.open {
		if !t.used[i] && j.Manifest.Pipeline == pipeline {
			return i
		}
	}
	return -1
}

func (t *tester) pipeline(c *cobra.Command, flags fileFlags, path string) error {
	return flags.pipelineOf(c, path, nil, func(a *app, p *workspace.Pipeline) error {
		var before *journal.Journal
		if i := t.baseline(p.Definition().Name); i >= 0 {
			before, t.used[i] = t.open[i], true
		}
		r, err := expect.Test(c.Context(), p, before)
		if err != nil {
			return withoutFigures(err)
		}
		t.reports = append(t.reports, r)
		a.progress.Clear()
		if t.asJSON || disk.IsStdout(t.junit, c.OutOrStdout()) {
			return nil
		}
		return report.Expect(c.OutOrStdout(), r)
	})
}

const tuneLong = `Every voter is asked about every row once, and all figures are cross-validated: they are of rows that the values
were not found on. It finds

  x in when = "margin < var.x" of a voter, which sends it only doubtful items. Without a goal (--overall-accuracy,
    --share, --cost) it is kept where answers are better by more than chance: fewer calls alone are no gain
  y in weights = var.y of an election that learns them, or accuracy = var.y of "weighted", kept where answers are
    better by more than chance, or where none is worse on balance and the confidences are better by more than
    chance, or where not certainly fewer are right and rows out of scope are found better by more than chance
  z in flag = "confidence < var.z", with --accuracy 0.98: at least 98 % of what is not flagged is right, with the
    confidence of --confidence and for texts like the rows. Half of the rows serve this guarantee, all of them with
    --variable z

An answer to a row out of scope is wrong, and flagging it is right: the knowledge does not have its label, such as
none. The election learned learns from such rows, and a guarantee says up to which share of them it holds. Without
rows, --rows N asks all voters about N rows of the knowledge, each of which is kept out of what is found for it.
run and eval take what was found by -var-file, and eval warns where it is given the same rows.`

// tuning holds the flags of racflow tune.
type tuning struct {
	flags                 fileFlags
	options               tune.Options
	to                    string
	asJSON                bool
	accuracy, share, cost float64
	promised              eval.PromiseGoal
}

func newTune() *cobra.Command {
	var t tuning
	c := &cobra.Command{
		Use:   "tune [FILE] --input VALIDATION",
		Short: "Find thresholds and weights of voters, and guarantee an accuracy",
		Long:  tuneLong,
		Example: `  racflow tune --accuracy 0.95 --variable flag_below --input validation.tsv --output tuned.hclvars pipelines/intent.hcl
  racflow tune -var model=gpt-4o-mini --input validation.tsv --share 0.3 pipelines/intent.hcl`,
		Args: oneFile,
		RunE: t.run,
	}
	t.register(c)
	t.flags.register(c)
	t.flags.registerInput(c)
	t.flags.registerCalls(c)
	for _, other := range []string{"input", "accuracy"} {
		c.MarkFlagsMutuallyExclusive("rows", other)
	}
	return c
}

func (t *tuning) register(c *cobra.Command) {
	o := &t.options
	c.Flags().Float64Var(&t.promised.Accuracy, "accuracy", 0, "guarantee that at least this share (0 to 1) of what is not flagged is right, for texts like the rows")
	c.Flags().Float64Var(&t.promised.Confidence, "confidence", .95, "with this confidence (0 to 1)")
	c.Flags().Float64Var(&t.accuracy, "overall-accuracy", 0, "reach this accuracy (0 to 1) with as little sent as that takes")
	c.Flags().Float64Var(&t.share, "share", 0, "the best accuracy with at most this share of the items sent (0 to 1)")
	c.Flags().Float64Var(&t.cost, "cost", 0, "the best accuracy at no more than this for a thousand items, by the prices in the file")
	c.MarkFlagsMutuallyExclusive("overall-accuracy", "share", "cost")
	c.Flags().IntVar(&o.Folds, "folds", 5, "parts of the rows, each of which is held out once")
	c.Flags().IntVar(&o.Rows, "rows", 0, "tune on `N` rows of the knowledge in place of an input")
	c.Flags().StringVar(&o.Threshold, "variable", "", "find the threshold `NAME` alone, where the file has several; with that of the flag rule, nothing else")
	c.Flags().StringVarP(&t.to, "output", "o", "", "write the variables to `FILE`.hclvars (- or default: print them)")
	c.Flags().BoolVar(&t.asJSON, "json", false, "print what was found as JSON")
}

// check reads the flags, and refuses combinations that do not go together.
func (t *tuning) check(given func(flag string) bool, stdout io.Writer) (err error) {
	o := &t.options
	for flag, goal := range map[string]struct {
		given *float64
		goal  **float64
	}{"overall-accuracy": {&t.accuracy, &o.Goal.Accuracy}, "share": {&t.share, &o.Goal.Share}, "cost": {&t.cost, &o.Goal.Cost}} {
		if given(flag) {
			*goal.goal = goal.given
		}
	}
	if given("accuracy") {
		o.Promise = &t.promised
	}
	switch {
	case o.Promise == nil && given("confidence"):
		return errors.New("--confidence is that of a guarantee: give --accuracy, too")
	case t.accuracy < 0 || t.accuracy > 1 || t.share < 0 || t.share > 1 || t.cost < 0:
		return errors.New("--overall-accuracy and --share are from 0 to 1, --cost is at least 0")
	case o.Folds < 2:
		return fmt.Errorf("--folds %d: at least 2 are needed to hold rows out", o.Folds)
	case given("rows") && o.Rows < o.Folds:
		return fmt.Errorf("--rows %d: at least one row for each of %d folds is needed", o.Rows, o.Folds)
	case t.asJSON && disk.IsStdout(t.to, stdout):
		return errors.New("--json and --output - both write to standard output: name a file with --output, or leave it out, since the JSON has the variables, too")
	}
	return nil
}

func (t *tuning) run(c *cobra.Command, args []string) error {
	if err := t.check(c.Flags().Changed, c.OutOrStdout()); err != nil {
		return err
	}
	return t.flags.pipelineOf(c, args[0], c.InOrStdin(), func(_ *app, p *workspace.Pipeline) error {
		out := terminal.Data(c.OutOrStdout())
		if t.asJSON && t.to == "" {
			out = io.Discard // the JSON has the variables
		}
		file, err := disk.OpenOutput(t.to, out, p.Reads()...)
		if err != nil {
			return err
		}
		found, err := p.Tune(c.Context(), t.options)
		if err == nil {
			err = t.write(c, file, found)
		} else {
			err = withoutFigures(err)
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		if file.Name() != "" {
			given, err := commandOf(c)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "variables in %s: racflow run -var-file %[1]s%s %s\n", t.to, flagsOfFile(given), args[0])
		}
		switch {
		case found.Unpromised != nil:
			return fmt.Errorf("no guarantee, and the threshold of the flag rule stays: %w", found.Unpromised)
		case found.Incomplete:
			return &exitError{code: exitItemsFailed}
		}
		return nil
	})
}

// write shows the results, and writes the variables.
func (t *tuning) write(c *cobra.Command, file *disk.Output, found *workspace.Tuned) (err error) {
	out, variables := c.OutOrStdout(), found.Variables
	if t.asJSON {
		err = writeJSON(out, report.TunedJSON(found.Subject, found.Outcome, found.Flag, variables))
	} else {
		err = report.Tune(out, found.Subject, found.Outcome, found.Flag)
	}
	if err != nil {
		return err
	}
	if file.Name() == "" {
		variables = "\n" + variables
	}
	if _, err = io.WriteString(file, variables); err == nil {
		err = file.Commit()
	}
	if err != nil {
		return fmt.Errorf("write the variables: %w", err)
	}
	return nil
}

// flagsOfFile returns the flags of a command that say what its file means, as a person types them: what was measured with a
// variable holds only with it.
func flagsOfFile(given *journal.ManifestCommand) string {
	var b strings.Builder
	for _, f := range given.Flags {
		if slices.Contains([]string{"var", "var-file", "set", "knowledge-column", "pipeline"}, f.Name) {
			b.WriteString(" --" + f.Name + " " + quotedArgument(f.Value))
		}
	}
	return b.String()
}
