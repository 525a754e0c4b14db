package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
)

func newEval() *cobra.Command {
	e := &evaluation{}
	var sweep []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval FILE",
		Short: "Measure a pipeline on an input with labels",
		Long: `Measure a pipeline on an input with labels: accuracy, macro-averaged F1, a table
per label, what each voter reaches alone and how many of its answers are
acceptable, agreement, rate and latency. An item that failed or got no answer
counts as wrong. An item whose label the knowledge does not have is out of
scope: no answer is the right one there, and both kinds are told apart.

--sweep runs the pipeline once for each value of an argument, or for each
combination where it is given several times, and prints a row for each:

  racflow eval --sweep neighbours.top_k=5,15,60 --sweep var.election=soft,majority FILE

A target is STAGE.ARGUMENT, an argument of the block or of its config, or
BLOCK.STAGE.ARGUMENT where several stages have the name, or var.NAME.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			targets, err := parseSweep(sweep)
			if err != nil {
				return err
			}
			e.path, e.stdin, e.stderr = args[0], c.InOrStdin(), c.ErrOrStderr()
			if len(targets) > 0 {
				return e.sweep(c, targets, asJSON)
			}
			r, exit, err := e.measure(c, nil)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), r)
			} else {
				err = report.Eval(c.OutOrStdout(), r)
			}
			if err != nil {
				return err
			}
			return exit
		},
	}
	e.flags.register(c)
	e.input.register(c)
	e.flags.calls.register(c)
	c.Flags().StringArrayVar(&sweep, "sweep", nil, "measure with each value of an argument: `TARGET=VALUE,VALUE` (may be repeated)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the evaluation as JSON")
	return c
}

// evaluation measures a pipeline, once or several times.
type evaluation struct {
	flags  fileFlags
	input  inputFlags
	path   string
	stdin  io.Reader
	stderr io.Writer
}

// measure runs the pipeline with some arguments set. exit is how the command
// ends where nothing else goes wrong.
func (e *evaluation) measure(c *cobra.Command, set []pipeline.Override) (r eval.Report, exit, err error) {
	e.flags.set = set
	j, err := newJob(c.Context(), e.stdin, &e.flags, &e.input, e.path)
	if err != nil {
		return r, nil, err
	}
	defer j.close()
	if err := warnTuned(e.stderr, &e.flags, j.path); err != nil {
		return r, nil, err
	}
	counter, cost, price := eval.NewCounter(j.ready.Labels()...), 0.0, costOf(j.session.pipeline)
	o, err := j.run(c.Context(), func(batch []run.Result) error {
		for _, r := range batch {
			counter.Add(r)
			for voter, usage := range r.Usages {
				cost += price(voter, usage)
			}
		}
		return nil
	})
	if err != nil {
		return r, nil, err
	}
	r = counter.Report(o.totals)
	r.Cost, r.Asked = cost, asked(j.session.pipeline, o.totals)
	if r.Scored == 0 {
		return r, nil, fmt.Errorf("no item of %s has a label to compare answers with: name the column that holds it with label = \"...\" in the input block", j.path)
	}
	return r, o.exit(), nil
}

// asked counts the items that went to voters over the network.
func asked(p *pipeline.Pipeline, t run.Totals) int {
	n := 0
	for _, s := range p.Stages {
		for _, worked := range t.Stages {
			if s.Block == "sample" && s.Info.Network && worked.Stage == "sample."+s.Name {
				n += worked.Rows
			}
		}
	}
	return n
}

// sweep measures all combinations. The knowledge is built by the first and
// found up to date by the others.
func (e *evaluation) sweep(c *cobra.Command, targets []sweepFlag, asJSON bool) error {
	if e.input.input == "-" {
		return fmt.Errorf("--sweep reads the input several times, which standard input does not allow: name a file with --input")
	}
	var names []string
	for _, t := range targets {
		names = append(names, t.target)
	}
	var rows []report.SweepRow
	var exit error
	for _, set := range combinations(targets) {
		row := report.SweepRow{}
		var given []string
		for _, o := range set {
			row.Set = append(row.Set, o.Value)
			given = append(given, o.String())
		}
		fmt.Fprintf(e.stderr, "%s\n", strings.Join(given, " "))
		r, failed, err := e.measure(c, set)
		if err != nil {
			return err
		}
		if failed != nil {
			exit = failed
		}
		row.Report = r
		rows = append(rows, row)
	}
	if asJSON {
		return firstError(writeJSON(c.OutOrStdout(), struct {
			Targets []string          `json:"targets"`
			Rows    []report.SweepRow `json:"rows"`
		}{names, rows}), exit)
	}
	return firstError(report.Sweep(c.OutOrStdout(), names, rows), exit)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
