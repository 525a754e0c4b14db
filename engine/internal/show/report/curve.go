package report

import (
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// maxGains limits the shown labels that would gain from more rows.
const maxGains = 10

// Curve writes how much more examples would improve the accuracy.
func Curve(w io.Writer, c eval.Curve) error {
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw, "ROWS OF A LABEL\tACCURACY\t95 % INTERVAL")
	for _, p := range c.Points {
		size := "all"
		if p.Most > 0 {
			size = fmt.Sprintf("at most %d", p.Most)
		}
		fmt.Fprintf(tw, "%s\t%.4f\t%s\n", size, p.Accuracy, between(p.Interval))
	}
	fmt.Fprintln(tw, "\nLABELS WITH\tLABELS\tITEMS\tACCURACY\t95 % INTERVAL")
	for _, g := range c.Groups {
		rows := fmt.Sprintf("%d rows or more", g.From)
		if g.To > 0 {
			rows = fmt.Sprintf("%d to %d rows", g.From, g.To)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.4f\t%s\n", rows, g.Labels, g.Items, g.Accuracy, between(g.Interval))
	}
	if c.Factor > 0 {
		fmt.Fprintf(tw, "\nGAINS MOST\tROWS\tACCURACY\tEXPECTED NOW\tWITH TWICE AS MANY\n")
		for _, l := range c.Labels[:min(len(c.Labels), maxGains)] {
			fmt.Fprintf(tw, "%s\t%d\t%.3f\t%.3f\t%.3f\n", terminal.Shorten(l.Label, valueWidth), l.Rows, l.Accuracy, l.Now, l.Doubled)
		}
	}
	if err := tw.Flush(); err != nil || c.Factor == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "\nTwice as many rows of a label leave %.0f %% of its errors; with twice as many of all labels an accuracy of %.4f is expected.\n", 100*c.Factor, c.Doubled)
	return err
}
