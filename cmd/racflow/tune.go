package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/output"
	"github.com/racflow/racflow/engine/promise"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/tune"
)

func newTune() *cobra.Command {
	var flags fileFlags
	var o tune.Options
	var to string
	var accuracy, share, cost float64
	var promised promise.Goal
	c := &cobra.Command{
		Use:   "tune FILE --input VALIDATION",
		Short: "Find thresholds and weights of voters, and promise an accuracy",
		Long: `Find the values of a pipeline's variables on rows with labels: of x in a rule
when = "margin < var.x" of a sample stage, which sends only the doubtful items to
a language model, and of y in weights = var.y or accuracy = var.y in the config of
the election, a map by the names of the voters.

Every voter is asked about every row once. The curve of what is sent against
accuracy and cost is found by cross-validation: all figures are of rows that the
values were not found on. Without a goal, as little is sent as costs at most half
a point of accuracy against the best point of the curve. Weights replace those of
the file only where they are better by more than chance.

--accuracy 0.98 finds x in flag = "confidence < var.x" of the election, too, so that
at least 98 % of what is not flagged is right, and promises it with the confidence
of --confidence: rows drawn as these are break the promise in 5 % of the cases at
most. An answer to a row whose label the knowledge does not have is wrong; flagging
it or leaving it without an answer is right. Half of the rows serve the promise
alone, the other half the other values; with --variable x, all rows serve the
promise. It needs no language model.

The values found are for run and eval with -var-file. eval warns when it is given
the rows that they were found on.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			for name, goal := range map[string]struct {
				given *float64
				goal  **float64
			}{"overall-accuracy": {&accuracy, &o.Goal.Accuracy}, "share": {&share, &o.Goal.Share}, "cost": {&cost, &o.Goal.Cost}} {
				if c.Flags().Changed(name) {
					*goal.goal = goal.given
				}
			}
			if c.Flags().Changed("accuracy") {
				o.Promise = &promised
			}
			switch {
			case accuracy < 0 || accuracy > 1 || share < 0 || share > 1 || cost < 0:
				return errors.New("--overall-accuracy and --share are from 0 to 1, --cost is at least 0")
			case o.Folds < 2:
				return fmt.Errorf("--folds %d: at least 2 are needed to hold rows out", o.Folds)
			}
			return flags.pipelineOf(c, args[0], c.InOrStdin(), func(_ *app, p *engine.Pipeline) (err error) {
				out, err := output.Open(to, c.OutOrStdout(), p.Reads()...)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, out.Close()) }()
				found, err := p.Tune(c.Context(), o)
				if err != nil {
					return withoutFigures(err)
				}
				if err := report.Tune(c.OutOrStdout(), found.Subject, found.Outcome, found.Flag); err != nil {
					return err
				}
				variables := found.Variables
				if out.Name() == "" {
					variables = "\n" + variables
				}
				if _, err = io.WriteString(out, variables); err == nil {
					err = out.Commit()
				}
				if err != nil {
					return fmt.Errorf("write the variables: %w", err)
				}
				if out.Name() != "" {
					fmt.Fprintf(c.ErrOrStderr(), "variables in %s: racflow run -var-file %[1]s %s\n", to, args[0])
				}
				if found.Unpromised != nil {
					return fmt.Errorf("no promise, and the threshold of the flag rule stays: %w", found.Unpromised)
				}
				if found.Incomplete {
					return &exitError{code: exitItemsFailed}
				}
				return nil
			})
		},
	}
	flags.register(c)
	flags.registerInput(c)
	flags.registerCalls(c)
	c.Flags().Float64Var(&promised.Accuracy, "accuracy", 0, "promise that at least this share (0 to 1) of what is not flagged is right")
	c.Flags().Float64Var(&promised.Confidence, "confidence", .95, "with this confidence (0 to 1)")
	c.Flags().Float64Var(&accuracy, "overall-accuracy", 0, "reach this accuracy (0 to 1) with as little sent as that takes")
	c.Flags().Float64Var(&share, "share", 0, "the best accuracy with at most this share of the items sent (0 to 1)")
	c.Flags().Float64Var(&cost, "cost", 0, "the best accuracy at no more than this for a thousand items, by the prices in the file")
	c.MarkFlagsMutuallyExclusive("overall-accuracy", "share", "cost")
	c.Flags().IntVar(&o.Folds, "folds", 5, "parts of the rows, each of which is held out once")
	c.Flags().StringVar(&o.Threshold, "variable", "", "the threshold to find, where the file has several; that of the flag rule: nothing else")
	c.Flags().StringVar(&to, "output", "", "write the variables to `FILE`.hclvars (- or default: print them)")
	return c
}
