package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/terminal"
)

const runsDiffLong = `Compare the answers of two runs, the one before (A) and the one after (B). Items are
matched by their ids, or by their lines where the input has no ids.

Where the input says what is expected, the flips are shown by label: lost are items
that A has right and B has wrong, gained the others. Whether that is more than chance
is McNemar's exact test: how often two runs that are equally good would differ at
least so much. Where it is not known what is expected, changed answers are shown.

Then what each run took, and what differs in what was run.`

func newRunsDiff() *cobra.Command {
	var state string
	var asJSON, items bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the answers of two runs",
		Long:  runsDiffLong,
		Example: `  racflow runs diff run-000001 newest
  racflow runs diff --items run-000001 run-000002
  racflow runs diff --json run-000001 run-000002`,
		Args: words(2, "name two runs; racflow runs list shows them"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := compareRuns(c.ErrOrStderr(), state, args)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return writeDiff(c.OutOrStdout(), r, items)
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object, with the items")
	c.Flags().BoolVar(&items, "items", false, "list the items that are answered differently")
	return c
}

// compareRuns compares two runs of a state folder.
func compareRuns(w io.Writer, state string, names []string) (*eval.RunComparison, error) {
	var open [2]*journal.Journal
	for i := range open {
		kept, id, err := runOf(state, names[i])
		if err != nil {
			return nil, err
		}
		if i == 1 && id == open[0].ID() {
			return nil, fmt.Errorf("both are run %s", id)
		}
		if open[i], err = kept.Open(id); err != nil {
			return nil, err
		}
		defer open[i].Close(nil) //nolint:errcheck // it was only read
		if open[i].Manifest.Answers == journal.PassageAnswers {
			return nil, fmt.Errorf("run %s finds passages, which cannot be compared: racflow eval measures them", id)
		}
		reportChanged(w, open[i])
	}
	return eval.Compare(open[0], open[1]), nil
}

// reportChanged reports that some lines of a journal do not count.
func reportChanged(w io.Writer, j *journal.Journal) {
	if j.Changed > 0 {
		fmt.Fprintf(w, "run %s: %s of its journal changed since it was written: these items are left out, and resuming the run answers them again\n", j.ID(), terminal.Plural(j.Changed, "line"))
	}
}

// maxFlips is the number of labels or changes that are shown.
const maxFlips = 15

func writeDiff(w io.Writer, r *eval.RunComparison, items bool) error {
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw, "\tRUN\tANSWERED\tACCURACY\tTOKENS\tCOST")
	for i, s := range []eval.ComparedRun{r.A, r.B} {
		accuracy := "-"
		if s.Accuracy != nil {
			accuracy = fmt.Sprintf("%.3f (%s) of %d", *s.Accuracy, between(s.Interval), s.Scored)
		}
		fmt.Fprintf(tw, "%c\t%s\t%d\t%s\t%d\t%s\n", 'A'+i, s.Run, s.Answered, accuracy, s.Tokens, costOf(s.Cost))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s answered by both, %d by A alone, %d by B alone\n", terminal.Plural(r.Both, "item"), r.OnlyA, r.OnlyB)
	if r.Decided > 0 {
		fmt.Fprintf(w, "%s left out: people have decided about what they say\n", terminal.Plural(r.Decided, "item"))
	}
	if r.Relabelled > 0 {
		fmt.Fprintf(w, "%s left out: A and B expect different labels\n", terminal.Plural(r.Relabelled, "item"))
	}
	if p := r.Right; p != nil {
		fmt.Fprintf(w, "%d lost, %d gained of %d: %+.3f (%s); McNemar's exact test: p = %.3g\n", p.Lost, p.Gained, p.Items, p.Difference(), between(p.Interval()), p.Chance())
	}
	if len(r.Flips) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(tw, "LABEL\tLOST\tGAINED")
		for _, f := range r.Flips[:min(len(r.Flips), maxFlips)] {
			fmt.Fprintf(tw, "%s\t%d\t%d\n", terminal.Escape(f.Label), f.Lost, f.Gained)
		}
		more(tw, len(r.Flips), "label")
	}
	if len(r.Changes) > 0 {
		fmt.Fprintln(tw, "\nANSWER OF A\tANSWER OF B\tITEMS")
		for _, f := range r.Changes[:min(len(r.Changes), maxFlips)] {
			fmt.Fprintf(tw, "%s\t%s\t%d\n", shownAnswer(f.A), shownAnswer(f.B), f.Items)
		}
		more(tw, len(r.Changes), "change")
	}
	if items && len(r.Items) > 0 {
		fmt.Fprintln(tw, "\nLINE\tID\tEXPECTED\tA\tB")
		for _, i := range r.Items {
			fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\n", i.Line, terminal.Escape(i.ID), terminal.Escape(i.Expected), shownAnswer(i.A), shownAnswer(i.B))
		}
	}
	if len(r.Manifest) == 0 {
		fmt.Fprintln(tw, "\nnothing that answers depend on differs in what was run")
	} else {
		fmt.Fprintln(tw, "\nwhat differs in what was run:")
	}
	for _, d := range r.Manifest {
		fmt.Fprintf(tw, "  %s\n", message(errors.New(d)))
	}
	return tw.Flush()
}

func more(w io.Writer, n int, what string) {
	if n > maxFlips {
		fmt.Fprintf(w, "and %s; --json has all\n", terminal.Plural(n-maxFlips, "other "+what))
	}
}

func between(i eval.Interval) string { return fmt.Sprintf("%.3f to %.3f", i.Low, i.High) }

// shownAnswer formats an answer for a table.
func shownAnswer(answer string) string {
	if answer == "" {
		return "(none)"
	}
	return terminal.Escape(terminal.Shorten(answer, 40))
}
