package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/engine/tune"
)

func newEval() *cobra.Command {
	e := &evaluation{}
	e.flags.lists, e.flags.strict = true, true
	var sweep, ablate []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval FILE",
		Short: "Measure a pipeline on an input with labels or gold passages",
		Long: `Measure a pipeline on an input with labels: accuracy, macro-averaged F1, a table
per label, what each voter reaches alone and how many of its answers are
acceptable, agreement, rate and latency. An item that failed or got no answer
counts as wrong. An item whose label the knowledge does not have is out of
scope: no answer is the right one there, and both kinds are told apart.

Where the input says which passages should be found, in a column gold, it measures
what each retrieve and rerank stage left: recall@k, the mean share of an item's gold
passages among the first k, which is published as Pass@k too; 1 - recall@20; nDCG@10;
MRR. Items without gold passages are left out. Where an item failed, the stages
that it did not get through count as if they had found nothing.

--sweep runs the pipeline once for each value of an argument, or for each
combination where it is given several times, and prints a row for each:

  racflow eval --sweep neighbours.top_k=5,15,60 --sweep var.election=soft,majority FILE

A target is STAGE.ARGUMENT, an argument of the block or of its config, or
BLOCK.STAGE.ARGUMENT where several stages have the name, or var.NAME. Values are
measured in the order given. llm.n=3,1 sends each prompt once, and its row for 1
shows the tokens of the request for 3; llm.n=1,3 sends it again for two more.

--ablate runs it whole, and once without each part that is named, and prints a row
for each. Parts are ` + partNames() + `.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			targets, err := parseSweep(sweep)
			if err != nil {
				return err
			}
			for _, k := range e.cuts {
				if k < 1 {
					return fmt.Errorf("--k: %d is no length of a list; it is at least 1", k)
				}
			}
			e.path, e.stdin, e.stderr = args[0], c.InOrStdin(), c.ErrOrStderr()
			switch {
			case len(targets) > 0 && len(ablate) > 0:
				return errors.New("give --sweep or --ablate: one table shows one or the other")
			case len(targets) > 0:
				return e.sweep(c, targets, asJSON)
			case len(ablate) > 0:
				return e.ablate(c, ablate, asJSON)
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
	c.Flags().StringSliceVar(&ablate, "ablate", nil, "measure without each of these `PARTS`: "+partNames())
	c.Flags().IntSliceVar(&e.cuts, "k", eval.Cuts, "measure recall among the first `K,K` passages")
	c.Flags().BoolVar(&asJSON, "json", false, "print the evaluation as JSON")
	return c
}

// evaluation measures a pipeline, once or several times.
type evaluation struct {
	flags  fileFlags
	input  inputFlags
	cuts   []int // of recall
	told   bool  // which gold passages the knowledge lacks
	warned bool  // of rows that were tuned on
	path   string
	stdin  io.Reader
	stderr io.Writer
}

// measure runs the pipeline with some arguments set. exit is how the command
// ends where nothing else goes wrong.
func (e *evaluation) measure(c *cobra.Command, set []pipeline.Override) (r eval.Report, exit, err error) {
	e.flags.set = set
	j, err := newJob(c.Context(), e.stdin, &e.flags, &e.input, e.path, e.check)
	if err != nil {
		return r, nil, err
	}
	defer j.close()
	if !e.warned {
		e.warned = true
		if err := warnTuned(e.stderr, &e.flags, j.path, func() (string, error) { return tune.Digest(j.path) }); err != nil {
			return r, nil, err
		}
	}
	passages := eval.NewPassages(e.cuts)
	counter, cost, price := eval.NewCounter(j.ready.Labels()...), 0.0, j.pipeline.Definition().Cost
	o, err := j.run(c.Context(), func(batch []run.Result) error {
		for _, r := range batch {
			counter.Add(r)
			passages.Add(r)
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
	r.Cost, r.Asked = cost, asked(j.pipeline.Definition(), o.totals)
	if r.Retrieval, err = e.retrieval(c, j, passages); err != nil {
		return r, nil, err
	}
	if r.Scored == 0 && r.Retrieval == nil {
		return r, nil, nothingKnown(j)
	}
	return r, o.exit(), nil
}

// check refuses rows on which nothing can be measured, before any voter is
// asked: that may cost money. Those that can be read only once are refused
// afterwards.
func (e *evaluation) check(j *job) error {
	if !j.pipeline.Rereadable() {
		return nil
	}
	votes := slices.ContainsFunc(j.pipeline.Definition().Stages, func(s *pipeline.Stage) bool { return s.Enabled && s.Block == "elect" })
	known, unusable := false, ""
	err := j.pipeline.Look(func(row source.Row) bool {
		if row.Err != nil && unusable == "" {
			unusable = fmt.Sprintf("; line %d cannot be used: %v", row.Line, row.Err)
		}
		known = votes && row.Label != "" || slices.ContainsFunc(row.Gold, func(g source.Gold) bool { return g.Grade > 0 })
		return !known
	})
	if err == nil && !known {
		err = fmt.Errorf("%w%s", nothingKnown(j), terminal.Sanitize(unusable))
	}
	return err
}

func nothingKnown(j *job) error {
	return fmt.Errorf("no item of %s has a label to compare answers with, or gold passages to compare lists with: name the column that holds them with label = \"...\" or gold = \"...\" in the input block; labels need an election, and a knowledge that has labels", j.path)
}

// retrieval sums up what was found, and tells once which gold passages never
// can be.
func (e *evaluation) retrieval(c *cobra.Command, j *job, p *eval.Passages) (*eval.Retrieval, error) {
	absent, err := j.ready.Absent(c.Context(), p.Unseen())
	if err != nil {
		return nil, err
	}
	r := p.Report(absent)
	if r != nil && r.Absent > 0 && !e.told {
		e.told = true
		fmt.Fprintf(e.stderr, "warning: %d of %d gold passages are not in the knowledge and count as not found, such as %q\n", r.Absent, r.Passages, r.Example)
	}
	return r, nil
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

// variant is a pipeline with some of its arguments set.
type variant struct {
	row  []string // what its row of the table begins with
	name string   // to tell of it while it is measured
	set  []pipeline.Override
}

// sweep measures all combinations.
func (e *evaluation) sweep(c *cobra.Command, targets []sweepFlag, asJSON bool) error {
	var names []string
	for _, t := range targets {
		names = append(names, t.target)
	}
	var all []variant
	for _, set := range combinations(targets) {
		v := variant{set: set}
		var given []string
		for _, o := range set {
			v.row = append(v.row, o.Value)
			given = append(given, o.String())
		}
		v.name = strings.Join(given, " ")
		all = append(all, v)
	}
	return e.compare(c, names, all, asJSON)
}

// compare measures variants and writes a table of them. The knowledge is built
// by the first and found up to date by the others.
func (e *evaluation) compare(c *cobra.Command, names []string, variants []variant, asJSON bool) error {
	if e.input.input == "-" {
		return errors.New("the input is read several times, which standard input does not allow: name a file with --input")
	}
	var rows []report.SweepRow
	var exit error
	for _, v := range variants {
		row := report.SweepRow{Set: v.row}
		fmt.Fprintf(e.stderr, "%s\n", v.name)
		r, failed, err := e.measure(c, v.set)
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
		return cmp.Or(writeJSON(c.OutOrStdout(), struct {
			Targets []string          `json:"targets"`
			Rows    []report.SweepRow `json:"rows"`
		}{names, rows}), exit)
	}
	return cmp.Or(report.Sweep(c.OutOrStdout(), names, rows), exit)
}
