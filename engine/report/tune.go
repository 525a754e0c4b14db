package report

import (
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/engine/tune"
	"github.com/racflow/racflow/engine/tune/crossval"
	"github.com/racflow/racflow/engine/tune/flagging"
)

// Tune writes what tuning found for people: the trade-off curve and what the
// choice is worth, all of it on rows that it was not found on, and what is promised,
// which may be nil.
func Tune(w io.Writer, s tune.Subject, o tune.Outcome, promised *flagging.Found) error {
	if !s.Nothing() {
		if err := tuned(w, s, o); err != nil || promised == nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := io.WriteString(w, promised.String())
	return err
}

func tuned(w io.Writer, s tune.Subject, o tune.Outcome) error {
	tw := terminal.NewTable(w)
	priced := o.Curve[len(o.Curve)-1].Cost > 0
	row := func(name string, p tune.Point, note string) {
		fmt.Fprintf(tw, "%s\t%.1f %%\t%.4f\t", name, 100*p.Sent, p.Accuracy)
		if priced {
			fmt.Fprintf(tw, "%.4f\t", p.Cost)
		}
		fmt.Fprintln(tw, note)
	}
	fmt.Fprintf(tw, "%d items in %d folds; accuracy and share on the fold that was left out\n\n", o.Items, o.Folds)
	if s.Variable != "" {
		fmt.Fprintf(tw, "%s\tSENT\tACCURACY\t", s.Variable)
		if priced {
			fmt.Fprint(tw, "COST OF 1,000 ITEMS\t")
		}
		fmt.Fprintln(tw)
		for k, p := range o.Curve {
			note := ""
			if k == o.Chosen {
				note = "<- chosen"
			}
			row(fmt.Sprintf("%.4f", p.Threshold), p, note)
		}
		fmt.Fprintln(tw)
		row("the choice", o.Choice, "made for each fold on the others")
	}
	if s.Weights == "" {
		fmt.Fprintf(tw, "everything sent\t\t%.4f\t\n", o.Plain)
	} else {
		fmt.Fprintf(tw, "everything sent, %s tuned\t\t%.4f\t\n", s.Weights, o.Fitted)
		fmt.Fprintf(tw, "everything sent, %s of the file\t\t%.4f\t\n", s.Weights, o.Plain)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if s.Variable != "" {
		fmt.Fprintf(w, "\nthe choice against everything sent: %s\n", o.Against)
	}
	if s.Weights != "" {
		fmt.Fprintf(w, "%s: %s\n", s.Weights, kept(o.Found != nil, o.Gain))
	}
	if o.Cut {
		fmt.Fprintf(w, "the search for %s ended before it was done: it holds so many elections at most\n", s.Weights)
	}
	_, err := fmt.Fprintln(w, "[bounds that hold with 95 % confidence each]")
	return err
}

// kept says whether a value that was found replaces that of the file, and why.
func kept(kept bool, gain crossval.Difference) string {
	if kept {
		return fmt.Sprintf("better than in the file by %s", gain)
	}
	return fmt.Sprintf("stays as in the file: what was found is not better beyond chance: %s", gain)
}
