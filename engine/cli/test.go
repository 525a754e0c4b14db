package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/expect"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/rule"
)

func newTest() *cobra.Command {
	var flags fileFlags
	var t tester
	c := &cobra.Command{
		Use:   "test FILE...",
		Short: "Test whether what pipeline files expect holds",
		Long: `Test whether what pipeline files expect holds. An expect block in a pipeline has a
rule, such as

    expect "accuracy" { rule = "accuracy >= 0.92" }

Rules compare figures, which are measured on the input of the pipeline or on one that
the block names, joined by and, or, not. They may name variables, var.NAME. There are

` + figureTable() + `
All that is measured on an input is measured at once. For each rule, racflow prints
what it found, with the interval that holds the true figure in 95 of 100 cases and, where the rule
does not hold, what would be needed. A figure that cannot be measured, such as the
recall of a label that no item has, fails its rule.

--baseline RUN compares the answers with those of a run that is kept (racflow runs list;
newest is the last one), item by item: the test fails where more items were lost than
gained, and McNemar's exact test gives p < 0.05. A run may be named for each pipeline.

The exit code is 0 if all holds, 4 if something does not, 3 if all holds and items or
rows failed, and 1 if something could not be tested: a file that expects nothing is
an error. --junit FILE writes what CI systems show, - to standard output.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("name pipeline files, such as: %s pipelines/intent.hcl", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if t.asJSON && output.IsStdout(t.junit, c.OutOrStdout()) {
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

// figureTable lists what rules can name.
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
	column := width // what it says begins on a line of its own
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

// tester is a test of files.
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
	var to *output.File
	if t.junit != "" {
		if to, err = output.Open(t.junit, c.OutOrStdout(), files...); err != nil {
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
	case !output.IsStdout(t.junit, out):
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

// file tests the pipelines of a file that expect something.
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

// baseline is the first run of a pipeline that is not used yet; -1: there is none.
func (t *tester) baseline(pipeline string) int {
	for i, j := range t.open {
		if !t.used[i] && j.Manifest.Pipeline == pipeline {
			return i
		}
	}
	return -1
}

func (t *tester) pipeline(c *cobra.Command, flags fileFlags, path string) error {
	return flags.pipelineOf(c, path, nil, func(a *app, p *engine.Pipeline) error {
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
		if t.asJSON || output.IsStdout(t.junit, c.OutOrStdout()) {
			return nil
		}
		return report.Expect(c.OutOrStdout(), r)
	})
}
