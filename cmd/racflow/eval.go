package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
)

func newEval() *cobra.Command {
	var flags fileFlags
	var input inputFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval FILE",
		Short: "Measure a pipeline on an input with labels",
		Long: `Measure a pipeline on an input with labels: accuracy, macro-averaged F1, a table
per label, what each voter reaches alone, agreement, rate and latency. An item
that failed or got no answer counts as wrong.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			j, err := newJob(c.Context(), c.InOrStdin(), &flags, &input, args[0])
			if err != nil {
				return err
			}
			defer j.close()
			counter := eval.NewCounter()
			o, err := j.run(c.Context(), func(batch []run.Result) error {
				for _, r := range batch {
					counter.Add(r)
				}
				return nil
			})
			if err != nil {
				return err
			}
			r := counter.Report(o.totals)
			if r.Scored == 0 {
				return fmt.Errorf("no item of %s has a label to compare answers with: name the column that holds it with label = \"...\" in the input block", j.path)
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), r)
			} else {
				err = report.Eval(c.OutOrStdout(), r)
			}
			if err != nil {
				return err
			}
			return o.exit()
		},
	}
	flags.register(c)
	input.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the evaluation as JSON")
	return c
}
