package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/terminal"
)

// writeSpending shows what limits on what voters take come to.
func writeSpending(w io.Writer, s *plan.Spending) error {
	paid := slices.ContainsFunc(s.Rows, func(row plan.Spent) bool { return row.Cost > 0 })
	columns := []struct {
		name  string
		shown bool
		cell  func(plan.Spent) string
	}{
		{"CALLS", s.Limit.Calls != nil, amount},
		{"BUDGET", s.Limit.Money != nil, amount},
		{"ITEMS SENT", true, func(row plan.Spent) string { return fmt.Sprint(row.Items) }},
		{"CALLS", s.Limit.Money != nil, func(row plan.Spent) string { return fmt.Sprint(row.Calls) }},
		{"COST", paid, func(row plan.Spent) string { return cost(row.Cost) }},
		{"ERRORS EXPECTED AMONG THEM", s.Confident, func(row plan.Spent) string { return fmt.Sprintf("%.0f", row.Doubt) }},
		{"ERRORS AMONG THEM", s.Labelled > 0, func(row plan.Spent) string { return fmt.Sprint(row.Errors) }},
		{"ACCURACY AT MOST", s.Labelled > 0, func(row plan.Spent) string { return fmt.Sprintf("%.3f", row.Accuracy) }},
	}
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw)
	var names []string
	for _, c := range columns {
		if c.shown {
			names = append(names, c.name)
		}
	}
	fmt.Fprintln(tw, strings.Join(names, "\t"))
	for _, row := range s.Rows {
		var cells []string
		for _, c := range columns {
			if c.shown {
				cells = append(cells, c.cell(row))
			}
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "Items that gain most for what they cost are sent first, by the estimate above. A call counts with its resamples.")
	if s.Confident {
		fmt.Fprint(w, " Errors are expected by the confidence of the other voters' answers.")
	}
	if s.Labelled > 0 {
		fmt.Fprintf(w, " Errors and accuracy are of %s with labels: at most so much is reached, if every item that is sent is answered rightly; racflow eval measures what is.", terminal.Plural(s.Labelled, "item"))
	}
	_, err := fmt.Fprintln(w)
	return err
}

// amount is what may be spent.
func amount(row plan.Spent) string {
	if math.IsInf(row.Amount, 1) {
		return "no limit"
	}
	return money(row.Amount)
}
