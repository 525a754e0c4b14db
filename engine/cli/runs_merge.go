package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/workspace"
)

const runsMergeLong = `Write what one run would have written whose input was divided with racflow run --part. RUN is the ID of a run
in --state, or the folder of a run that was copied from another machine (--state/runs/ID there, with its name). The
output is the same byte for byte. Answers, failures and what they cost become a new run in --state, which report,
explain, review and racflow runs resume can be used with.

The parts have to be complete: one that was interrupted is resumed first, where it ran. The input is read again, and
has to be as it was. No stage is started, and nobody is asked.`

func newRunsMerge() *cobra.Command {
	var to resultFlags
	var state, input string
	c := &cobra.Command{
		Use:   "merge RUN...",
		Short: "Put the runs of all parts of an input together as one run",
		Long:  runsMergeLong,
		Example: `  racflow runs merge run-000001 run-000002 run-000003 --output out.jsonl
  racflow runs merge copied/*/run-* --input texts.csv --output out.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the runs of all parts; racflow runs list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := to.check(); err != nil {
				return err
			}
			return merge(c, &to, state, input, args)
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	c.Flags().StringVar(&input, "input", "", "read the input of the runs from `FILE`, where it is at another place than it was")
	to.register(c)
	return c
}

func merge(c *cobra.Command, to *resultFlags, state, input string, runs []string) (err error) {
	log, err := newLog(c)
	if err != nil {
		return err
	}
	w, err := workspace.NewWorkspace(c.Context(), workspace.Options{Builtin: builtin, State: state, Log: log, Output: disk.OutputTarget(to.name, c.OutOrStdout())})
	if err != nil {
		return err
	}
	defer w.Close()
	shares, err := w.OpenShares(runs, input)
	if err != nil {
		return err
	}
	defer shares.Close() //nolint:errcheck // they were only read
	results, err := to.openOf(c, w, resultSource{
		reads:   shares.Reads(),
		resume:  func() (string, error) { return "", nil },
		columns: shares.Columns,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.close()) }()
	o, err := shares.Merge(c.Context(), results.write, results.finish)
	return ended(c, o, results, err)
}

// ended reports the results of a run that was merged here, as racflow run does, and returns the error
// to exit with. o is nil if the merge failed.
func ended(c *cobra.Command, o *workspace.Outcome, results *results, err error) error {
	if o == nil {
		return err
	}
	if results.failed == nil && (err == nil || c.Context().Err() != nil) {
		where := ""
		if err == nil {
			where = results.file.Name()
		}
		summarize(c.ErrOrStderr(), o, where)
	}
	for _, m := range o.Missing {
		fmt.Fprintf(c.ErrOrStderr(), "%d items answered without %s: %s\n", m.Items, m.Stage, message(m.First))
	}
	if results.file.Partial() != "" {
		results.report(c.ErrOrStderr())
	}
	if err == nil && o.Incomplete() {
		return &exitError{code: exitItemsFailed}
	}
	return err
}
