package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/engine/tune"
	"github.com/racflow/racflow/engine/tune/crossval"
	"github.com/racflow/racflow/engine/tune/flagging"
	"github.com/racflow/racflow/engine/tune/values"
)

// bounds says what the brackets behind a difference mean.
const bounds = "[bounds that hold with 95 % confidence each]"

// Tried writes what came of trying values, for people, and what to do.
func Tried(w io.Writer, m values.Metric, all []values.Tried) error {
	for _, t := range all {
		tw := terminal.NewTable(w)
		fmt.Fprintf(tw, "%s\t%s\t\n", t.Name, strings.ToUpper(m.String()))
		for i, mean := range t.Choice.Means {
			value, note := t.Values[i], ""
			if i == 0 {
				value, note = cmp.Or(value, "as it is"), "the file's"
			}
			fmt.Fprintf(tw, "%s\t%.4f\t%s\n", value, mean, note)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		best, better := t.Best()
		what := t.Name
		if better {
			what = t.Setting(best)
		}
		if _, err := fmt.Fprintf(w, "%s\n\n", kept(what, better, t.Choice.Gain)); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s\n\n", bounds)
	return err
}

// Tune writes what tuning found for people: the trade-off curve and what the
// choice is worth, all of it on rows that it was not found on, and what is promised,
// which may be nil.
func Tune(w io.Writer, s tune.Subject, o tune.Outcome, promised *flagging.Found) error {
	if !s.Nothing() {
		if err := tuned(w, s, o); err != nil {
			return err
		}
	}
	if promised == nil {
		return nil
	}
	if !s.Nothing() {
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
		fmt.Fprintln(w, kept(s.Weights, o.Found != nil, o.Gain))
	}
	if o.Cut {
		fmt.Fprintf(w, "the search for %s ended early: it has held as many elections as it may\n", s.Weights)
	}
	_, err := fmt.Fprintln(w, bounds)
	return err
}

// kept says whether what was found is kept, and why.
func kept(what string, kept bool, gain crossval.Difference) string {
	if kept {
		return fmt.Sprintf("%s: %s", what, gain)
	}
	return fmt.Sprintf("%s: stays as it is, because what was found is not better beyond chance: %s", what, gain)
}
