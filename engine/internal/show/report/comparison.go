package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// Comparison writes the figures of variants as one table. It leaves out empty columns. For
// retrieval it shows the figures of the last stage.
func Comparison(w io.Writer, c eval.Comparison) error {
	rows := c.Rows
	var table [][]string // by column, headings first
	for i, target := range c.Targets {
		cells := []string{target}
		for _, r := range rows {
			cells = append(cells, terminal.Shorten(r.Set[i], valueWidth))
		}
		table = append(table, cells)
	}
	for _, c := range slices.Concat(foundColumns(rows), answerColumns(rows), acceptableColumns(rows), costColumns(rows)) {
		cells := []string{c.name}
		for _, r := range rows {
			cells = append(cells, c.cell(r.Report))
		}
		if c.show {
			table = append(table, cells)
		}
	}
	tw := terminal.NewTable(w)
	for line := range len(rows) + 1 {
		for i, cells := range table {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, cells[line])
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return warn(w, rows)
}

// column is a column of the table. show means that at least one row has the figure.
type column struct {
	name string
	show bool
	cell func(eval.Report) string
}

// has reports whether f holds for any row.
func has(rows []eval.Row, f func(eval.Report) bool) bool {
	return slices.ContainsFunc(rows, func(r eval.Row) bool { return f(r.Report) })
}

// foundColumns returns the columns about the results of the last search or reranking.
func foundColumns(rows []eval.Row) []column {
	at := slices.IndexFunc(rows, func(r eval.Row) bool { return last(r.Report) != nil })
	if at < 0 {
		return nil
	}
	found := func(cell func(*eval.Ranking) float64) func(eval.Report) string {
		return func(r eval.Report) string {
			if last(r) == nil {
				return "-"
			}
			return fmt.Sprintf("%.4f", cell(last(r)))
		}
	}
	var columns []column
	for i, c := range last(rows[at].Report).Recall {
		columns = append(columns, column{fmt.Sprintf("RECALL@%d", c.K), true, found(func(s *eval.Ranking) float64 { return s.Recall[i].Share })})
	}
	return append(columns,
		column{"1-RECALL@20", true, found(func(s *eval.Ranking) float64 { return s.Failure })},
		column{"NDCG@10", true, found(func(s *eval.Ranking) float64 { return s.NDCG })},
		column{"MRR", true, found(func(s *eval.Ranking) float64 { return s.MRR })})
}

// answerColumns returns the columns about answers and their confidence.
func answerColumns(rows []eval.Row) []column {
	calibrated := has(rows, func(r eval.Report) bool { return r.Calibration != nil })
	scoped := has(rows, func(r eval.Report) bool { return r.Scope != nil })
	scored := has(rows, func(r eval.Report) bool { return r.Scored > 0 })
	scope := func(cell func(*eval.Scope) float64) func(eval.Report) string {
		return func(r eval.Report) string {
			if r.Scope == nil {
				return "-"
			}
			return fmt.Sprintf("%.4f", cell(r.Scope))
		}
	}
	return []column{
		{"ACCURACY", scored, func(r eval.Report) string { return fmt.Sprintf("%.4f", r.Accuracy) }},
		{"95 % INTERVAL", scored, func(r eval.Report) string {
			return fmt.Sprintf("%.4f-%.4f", r.AccuracyInterval.Low, r.AccuracyInterval.High)
		}},
		{"MACRO-F1", scored, func(r eval.Report) string { return fmt.Sprintf("%.4f", r.MacroF1) }},
		{"ECE", calibrated, func(r eval.Report) string {
			if r.Calibration == nil {
				return "-"
			}
			return fmt.Sprintf("%.4f", r.Calibration.ECE)
		}},
		{"IN SCOPE", scoped, scope(func(s *eval.Scope) float64 { return s.Accuracy })},
		{"UNANSWERED", scoped, scope(func(s *eval.Scope) float64 { return s.Unanswered })},
		{"OUT-OF-SCOPE RECALL", scoped, scope(func(s *eval.Scope) float64 { return s.Recall })},
	}
}

// acceptableColumns returns a column for each voter over the network.
func acceptableColumns(rows []eval.Row) (columns []column) {
	for _, r := range rows {
		for _, v := range r.Report.Voters {
			name := "ACCEPTABLE BY " + v.Name
			if v.Network && !slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
				columns = append(columns, column{name, true, acceptableBy(v.Name)})
			}
		}
	}
	return columns
}

// costColumns returns the columns about failures, calls, tokens and cost.
func costColumns(rows []eval.Row) []column {
	return []column{
		{"FAILED", has(rows, func(r eval.Report) bool { return r.Failed > 0 }), func(r eval.Report) string { return fmt.Sprint(r.Failed) }},
		{"ASKED", has(rows, func(r eval.Report) bool { return r.Asked > 0 }), func(r eval.Report) string { return fmt.Sprint(r.Asked) }},
		{"TOKENS IN", has(rows, func(r eval.Report) bool { return r.InputTokens > 0 }), func(r eval.Report) string { return fmt.Sprint(r.InputTokens) }},
		{"TOKENS OUT", has(rows, func(r eval.Report) bool { return r.OutputTokens > 0 }), func(r eval.Report) string { return fmt.Sprint(r.OutputTokens) }},
		{"COST", has(rows, func(r eval.Report) bool { return r.Cost > 0 }), func(r eval.Report) string { return fmt.Sprintf("%.4f", r.Cost) }},
	}
}

// warn lists the voters that are better than the election by more than chance.
func warn(w io.Writer, rows []eval.Row) error {
	for _, r := range rows {
		for _, v := range r.Report.Voters {
			if v.Alone.Interval().Low <= 0 {
				continue
			}
			if _, err := fmt.Fprintf(w, "warning: with %s: %s\n", strings.Join(r.Set, ", "), lead(v, r.Report.Scored)); err != nil {
				return err
			}
		}
	}
	return nil
}

// acceptableBy formats the share of a voter's acceptable answers.
func acceptableBy(voter string) func(eval.Report) string {
	return func(r eval.Report) string {
		for _, v := range r.Voters {
			if v.Name == voter {
				return fmt.Sprintf("%.1f %% of %d", 100*v.Acceptable, v.Answers)
			}
		}
		return "-"
	}
}

// last returns the figures of the last retrieve or rerank stage; nil: they were not measured.
func last(r eval.Report) *eval.Ranking {
	if r.Retrieval == nil || len(r.Retrieval.Stages) == 0 {
		return nil
	}
	return &r.Retrieval.Stages[len(r.Retrieval.Stages)-1]
}

// counts writes how many items there are, and where they come from.
func counts(w io.Writer, r eval.Report) {
	if r.Folds > 0 {
		fmt.Fprintf(w, "folds\t%d\tof the knowledge; each row is answered by a knowledge without its fold\n", r.Folds)
	}
	fmt.Fprintf(w, "items\t%d\t", r.Items)
	for _, part := range []struct {
		n    int
		name string
	}{{r.Failed - r.Unusable, "failed"}, {r.Unusable, "with rows that cannot be used"}, {r.Undecided, "without an answer"}, {r.Flagged, "flagged"}} {
		if part.n > 0 {
			fmt.Fprintf(w, "%d %s  ", part.n, part.name)
		}
	}
	fmt.Fprintln(w)
	if r.Folds > 0 && r.Scope != nil {
		fmt.Fprintf(w, "unknown rows\t%d\twith a label that no other fold has; %s as out of scope\n", r.Scope.Out, map[bool]string{true: "it counts", false: "they count"}[r.Scope.Out == 1])
	}
}

// Eval writes an evaluation for people.
func Eval(w io.Writer, r eval.Report) error {
	tw := terminal.NewTable(w)
	counts(tw, r)
	if r.Scored > 0 {
		answers(tw, r)
	}
	if r.Calibration != nil {
		confidence(tw, r.Calibration)
	}
	unknown(tw, r.Scope, r.Calibration)
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
	confused(tw, &r)
	fmt.Fprintf(tw, "\nLABEL (worst first)\tF1\tPRECISION\tRECALL\tITEMS\n")
	for _, l := range r.Worst(len(r.Labels)) {
		fmt.Fprintf(tw, "%s\t%.3f\t%.3f\t%.3f\t%d\n", titled(l.Label, l.Name), l.F1, l.Precision, l.Recall, l.Support)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return mistakes(w, r.Errors)
}

// retrieval writes the figures of the stages' lists.
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
