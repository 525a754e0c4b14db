package packet

import (
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// row is a source.Row. Numbers are those of texts, but for the lines.
type row struct {
	Line    int    `json:"line"`
	File    int    `json:"file,omitempty"`
	At      int    `json:"at"` // the line in the file
	ID      int    `json:"id,omitempty"`
	Text    int    `json:"text,omitempty"`
	Label   int    `json:"label,omitempty"`
	Context int    `json:"context,omitempty"`
	Gold    []int  `json:"gold,omitzero"`
	Grades  floats `json:"grades,omitempty"`
	Parent  int    `json:"parent,omitempty"` // of Trace
	State   int    `json:"state,omitempty"`
	Meta    int    `json:"meta,omitempty"`
	Fields  []int  `json:"fields,omitzero"`
	Err     *fault `json:"err,omitempty"`
}

func (w *writer) row(r source.Row) row {
	out := row{
		Line: r.Line, ID: w.text(r.ID), Text: w.text(r.Text), Label: w.text(r.Label), Context: w.text(r.Context),
		Parent: w.text(r.Trace.Parent), State: w.text(r.Trace.State), Meta: w.meta(r.Meta), Fields: w.fields(r.Fields), Err: w.fault(r.Err),
	}
	file, at := r.Place()
	out.File, out.At = w.text(file), at
	out.Gold, out.Grades = w.gold(r.Gold)
	return out
}

func (r *reader) row(in row) source.Row {
	out := source.Row{
		Line: in.Line, ID: r.text(in.ID), Text: r.text(in.Text), Label: r.text(in.Label), Context: r.text(in.Context),
		Gold:  r.gold(in.Gold, in.Grades),
		Trace: sdk.Trace{Parent: r.text(in.Parent), State: r.text(in.State)}, Meta: r.meta(in.Meta), Fields: r.fields(in.Fields), Err: r.fault(in.Err),
	}
	return out.At(r.text(in.File), in.At)
}

// gold are passages: of each its quote, how many ids it has (-1: nil), and these; with the
// grades.
func (w *writer) gold(all []source.Gold) (list []int, grades floats) {
	if all == nil {
		return nil, nil
	}
	list = []int{}
	for _, g := range all {
		n := len(g.IDs)
		if g.IDs == nil {
			n = -1
		}
		list = append(list, w.text(g.Quote), n)
		for _, id := range g.IDs {
			list = append(list, w.text(id))
		}
		grades = append(grades, floatsOf(g.Grade)...)
	}
	return list, grades
}

func (r *reader) gold(list []int, grades floats) []source.Gold {
	if list == nil {
		return nil
	}
	all := []source.Gold{}
	for len(list) > 0 {
		if len(list) < 2 || list[1] > len(list)-2 || list[1] < -1 {
			r.fail("a gold passage is cut off")
			return nil
		}
		g := source.Gold{Quote: r.text(list[0])}
		n := list[1]
		list = list[2:]
		if n >= 0 {
			g.IDs = make([]string, n)
			for i := range g.IDs {
				g.IDs[i] = r.text(list[i])
			}
			list = list[n:]
		}
		all = append(all, g)
	}
	for i, grade := range r.numbers(grades, len(all)) {
		all[i].Grade = grade
	}
	return all
}

// same reports whether two slices are the same memory, or are both nil.
func same[T any](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b) && (a == nil) == (b == nil)
	}
	return len(a) == len(b) && &a[0] == &b[0]
}
