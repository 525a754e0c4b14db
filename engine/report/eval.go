package report

import (
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/terminal"
)

// Eval writes an evaluation for people.
func Eval(w io.Writer, r eval.Report) error {
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "items\t%d\t", r.Items)
	for _, part := range []struct {
		n    int
		name string
	}{{r.Failed, "failed"}, {r.Undecided, "without an answer"}, {r.Flagged, "flagged"}} {
		if part.n > 0 {
			fmt.Fprintf(tw, "%d %s  ", part.n, part.name)
		}
	}
	fmt.Fprintln(tw)
	if r.Scored > 0 {
		answers(tw, r)
	}
	if r.Calibration != nil {
		confidence(tw, r.Calibration)
	}
	flags(tw, r.Flags)
	promised(tw, r)
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
	if r.Retrieval != nil && len(r.Retrieval.Stages) > 0 {
		retrieval(tw, r.Retrieval)
	}
	if r.Calibration != nil {
		coverage(tw, r.Calibration)
	}
	if r.Scored > 0 && len(r.Voters) > 0 {
		voters(tw, r.Voters, r.Scored)
	}
	fmt.Fprintf(tw, "\nSTAGE\tITEMS\tBUSY (s)\n")
	for _, s := range r.Stages {
		fmt.Fprintf(tw, "%s\t%d\t%.2f\n", s.Stage, s.Rows, s.Busy)
	}
	if r.Scored == 0 {
		return tw.Flush()
	}
	confused(tw, r.Confused)
	fmt.Fprintf(tw, "\nLABEL (worst first)\tF1\tPRECISION\tRECALL\tITEMS\n")
	for _, l := range r.Worst(len(r.Labels)) {
		fmt.Fprintf(tw, "%s\t%.3f\t%.3f\t%.3f\t%d\n", terminal.Shorten(l.Label, valueWidth), l.F1, l.Precision, l.Recall, l.Support)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return mistakes(w, r.Errors)
}

// retrieval writes what the lists of the stages are worth.
func retrieval(w io.Writer, r *eval.Retrieval) {
	fmt.Fprintf(w, "gold passages\t%d\tof %d items", r.Passages, r.Items)
	for _, part := range []struct {
		n         int
		one, many string
	}{
		{r.Without, "item without any is left out", "items without any are left out"},
		{r.Failed, "item failed, and counts as if nothing was found", "items failed, and count as if nothing was found"},
		{r.Absent, "passage is not in the knowledge", "passages are not in the knowledge"},
	} {
		switch part.n {
		case 0:
		case 1:
			fmt.Fprintf(w, "; 1 %s", part.one)
		default:
			fmt.Fprintf(w, "; %d %s", part.n, part.many)
		}
	}
	fmt.Fprintf(w, "\n\nFOUND BY\t")
	for _, c := range r.Stages[0].Recall {
		fmt.Fprintf(w, "RECALL@%d\t", c.K)
	}
	fmt.Fprintf(w, "1-RECALL@20\tNDCG@10\tMRR\tLONGEST LIST\n")
	for _, s := range r.Stages {
		fmt.Fprintf(w, "%s\t", s.Stage)
		for _, c := range s.Recall {
			fmt.Fprintf(w, "%.4f\t", c.Share)
		}
		fmt.Fprintf(w, "%.4f\t%.4f\t%.4f\t%d\n", s.Failure, s.NDCG, s.MRR, s.Longest)
	}
}
