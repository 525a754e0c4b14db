package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Input describes the rows of an input before there are results.
type Input struct {
	// Columns are the columns besides id, text and label, in the order of the rows. nil: there are
	// none or, with Open, they are unknown.
	Columns []InputColumn
	Labels  bool          // rows may have labels
	Form    sdk.LabelForm // of the answers
	Open    bool          // rows may have columns besides Columns, because they can be read only once
}

// InputColumn is a column of an input.
type InputColumn struct {
	Name string
	kind kind // of all values seen
}

// maxColumns limits the columns of an input that become columns of results. Rows with more columns,
// for example where keys of JSON are data, are Open.
const maxColumns = 1000

// Add adds the columns of a row.
func (in *Input) Add(row source.Row) {
	in.Labels = in.Labels || row.Label != ""
	for i, f := range row.Fields {
		at := i
		if i >= len(in.Columns) || in.Columns[i].Name != f.Name {
			at = slices.IndexFunc(in.Columns, func(c InputColumn) bool { return c.Name == f.Name })
		}
		switch {
		case at >= 0:
			in.Columns[at].kind = in.Columns[at].kind.and(kindOf(f.Value))
		case len(in.Columns) == maxColumns:
			in.Open = true
		default:
			in.Columns = append(in.Columns, InputColumn{f.Name, kindOf(f.Value)})
		}
	}
}

// kind is the type of a column's values. With unknown, all are nil.
type kind int

const (
	unknown kind = iota
	truth
	small  // whole numbers that a float64 holds exactly
	whole  // whole numbers of 64 bits
	number // float64
	text
)

func kindOf(value any) kind {
	switch v := value.(type) {
	case nil:
		return unknown
	case bool:
		return truth
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		_, real := strconv.ParseFloat(v.String(), 64)
		switch {
		case err == nil && n >= -1<<53 && n <= 1<<53:
			return small
		case err == nil:
			return whole
		case real == nil && strings.ContainsAny(v.String(), ".eE"):
			return number
		}
	}
	return text
}

// and returns a kind that can hold the values of both kinds.
func (k kind) and(other kind) kind {
	low, high := min(k, other), max(k, other)
	switch {
	case low == unknown || low == high, low == small && high == whole, low == small && high == number:
		return high
	}
	return text
}

func (k kind) columnar() ColumnKind {
	switch k {
	case truth:
		return BoolColumn
	case small, whole:
		return IntColumn
	case number:
		return FloatColumn
	}
	return TextColumn
}

// typed converts a field's value to a column's kind. A value that does not fit stays unchanged, and
// the writer refuses it.
func (k kind) typed(value any) any {
	n, isNumber := value.(json.Number)
	if isNumber && (k == small || k == whole) {
		if v, err := n.Int64(); err == nil {
			return v
		}
	}
	if isNumber && k == number {
		if v, err := n.Float64(); err == nil {
			return v
		}
	}
	value = plain(value)
	if v, ok := value.(bool); ok && k.columnar() == TextColumn {
		return strconv.FormatBool(v)
	}
	return value
}

const (
	tableRows   = 12 // results that a table shows
	textWidth   = 64 // runes of a text
	idWidth     = 40
	remarkWidth = 100
)

// table shows the first results to a person.
type table struct {
	w    *bufio.Writer
	rows []outcome.Result
	more int
	hint string
}

func (t *table) Write(r outcome.Result) error {
	if len(t.rows) < tableRows {
		t.rows = append(t.rows, r)
	} else {
		t.more++
	}
	return nil
}

// Flush does nothing: the table is laid out as a whole.
func (t *table) Flush() error { return nil }

func (t *table) Close() error {
	if len(t.rows) == 0 {
		return nil
	}
	tw := terminal.NewTable(t.w)
	how, sure := "AGREEMENT", func(r outcome.Result) float64 { return r.Agreement }
	if slices.ContainsFunc(t.rows, func(r outcome.Result) bool { return r.Confidence > 0 && r.Decided == nil }) {
		how, sure = "CONFIDENCE", func(r outcome.Result) float64 { return r.Confidence }
	}
	fmt.Fprintf(tw, "TEXT\tANSWER\t%s\t\n", how)
	for _, r := range t.rows {
		answer, share := "-", ""
		switch {
		case r.RetrievalOnly && len(r.Candidates) > 0:
			answer = terminal.Shorten(r.Candidates[0].ID, idWidth)
		case r.Failure == nil && r.Answer != "":
			answer, share = terminal.Shorten(r.Answer, textWidth), fmt.Sprintf("%3.0f %%", 100*sure(r))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", terminal.Shorten(r.Text, textWidth), answer, share, remark(r))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if t.more > 0 {
		fmt.Fprintf(t.w, "... and %d more; %s\n", t.more, t.hint)
	}
	return t.w.Flush()
}

// remark returns notes on a result for people.
func remark(r outcome.Result) string {
	var all []string
	switch {
	case r.Failure != nil:
		all = append(all, fmt.Sprintf("%s failed: %v", r.Place(), r.Failure))
	case r.Reason != "":
		all = append(all, r.Reason)
	case r.Expected != "" && !r.Right() && !r.RetrievalOnly:
		all = append(all, "expected "+r.Expected)
	}
	if len(r.Labels) > 0 {
		all = append(all, LabelsText(r.Labels))
	}
	if len(r.Missing) > 0 {
		all = append(all, "without "+strings.Join(r.Without(), ", "))
	}
	if r.Flagged {
		all = append(all, "flagged")
	}
	if len(r.Citations) > 0 {
		all = append(all, cited(r.Citations))
	}
	return terminal.Shorten(strings.Join(all, ", "), remarkWidth)
}
