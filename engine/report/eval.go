package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/racflow/racflow/engine/eval"
)

// Eval writes an evaluation for people.
func Eval(w io.Writer, r eval.Report) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "items\t%d\t", r.Items)
	for _, part := range []struct {
		n    int
		name string
	}{{r.Failed, "failed"}, {r.Undecided, "without an answer"}, {r.Flagged, "flagged"}} {
		if part.n > 0 {
			fmt.Fprintf(tw, "%d %s  ", part.n, part.name)
		}
	}
	fmt.Fprintf(tw, "\naccuracy\t%.4f\tof %d items with an expected label\n", r.Accuracy, r.Scored)
	if sc := r.Scope; sc != nil {
		fmt.Fprintf(tw, "in scope\t%.4f\tof %d items right; %.1f %% left without an answer\n", sc.Accuracy, sc.In, 100*sc.Unanswered)
		fmt.Fprintf(tw, "out of scope\t%.4f\tof %d items rightly left without an answer\n", sc.Recall, sc.Out)
	}
	fmt.Fprintf(tw, "macro-F1\t%.4f\tover %d labels\n", r.MacroF1, len(r.Labels))
	fmt.Fprintf(tw, "agreement\t%.4f\tmean share of the votes for the answer\n", r.Agreement)
	fmt.Fprintf(tw, "items/s\t%.1f\n", r.ItemsPerSecond)
	fmt.Fprintf(tw, "latency\t%.1f ms\tmedian; %.1f ms at the 99th percentile (a batch answers together)\n", r.P50, r.P99)
	if r.InputTokens+r.OutputTokens > 0 {
		fmt.Fprintf(tw, "tokens\t%d\tin, %d out\n", r.InputTokens, r.OutputTokens)
	}
	if r.Asked > 0 {
		fmt.Fprintf(tw, "asked\t%d\titems over the network\n", r.Asked)
	}
	if r.Cost > 0 {
		fmt.Fprintf(tw, "cost\t%.4f\n", r.Cost)
	}
	if len(r.Voters) > 0 {
		fmt.Fprintf(tw, "\nVOTER\tACCURACY ALONE\tITEMS\tACCEPTABLE ANSWERS\n")
		for _, v := range r.Voters {
			fmt.Fprintf(tw, "%s\t%.4f\t%.1f %%\t%.1f %% of %d\n", v.Name, v.Accuracy, 100*v.Accepted, 100*v.Acceptable, v.Answers)
		}
	}
	fmt.Fprintf(tw, "\nSTAGE\tITEMS\tBUSY (s)\n")
	for _, s := range r.Stages {
		fmt.Fprintf(tw, "%s\t%d\t%.2f\n", s.Stage, s.Rows, s.Busy)
	}
	fmt.Fprintf(tw, "\nLABEL (worst first)\tF1\tPRECISION\tRECALL\tITEMS\n")
	for _, l := range r.Worst(len(r.Labels)) {
		fmt.Fprintf(tw, "%s\t%.3f\t%.3f\t%.3f\t%d\n", shorten(l.Label, tableWidth), l.F1, l.Precision, l.Recall, l.Support)
	}
	return tw.Flush()
}
