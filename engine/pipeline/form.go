package pipeline

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/source"
)

// formArguments say how the rows of a file are written.
var formArguments = []string{"format", "part"}

// form reads how the rows of a file are written.
func (a arguments) form(path string) source.Form {
	f := source.Form{Format: source.FormatOf(path)}
	if format := a.choice("format", "", grammar.Formats()...); format != "" {
		f.Format = source.Format(format)
	}
	f.Part = a.part()
	return f
}

// part reads which share of the rows counts.
func (a arguments) part() (part [2]float64) {
	v, at, ok := a.value("part", cty.List(cty.Number))
	if !ok {
		return part
	}
	given := v.AsValueSlice()
	for i, n := range given {
		if i < len(part) && !n.IsNull() {
			part[i], _ = n.AsBigFloat().Float64()
		}
	}
	if len(given) != 2 || part[0] < 0 || part[0] >= part[1] || part[1] > 1 {
		a.errorAt(at, "Value out of range", "part says from where to where the rows count, such as [0, 0.9] for nine of ten and [0.9, 1] for the others.")
		return [2]float64{}
	}
	return part
}

// mapColumns sets the columns that the command line names. Only a knowledge has contexts, and
// only an input has gold passages.
func (l *loader) mapColumns(s *Source, input bool) {
	columns := map[string]*string{"id": &s.ID, "text": &s.Text, "label": &s.Label}
	if input {
		columns["gold"] = &s.Gold
	} else {
		columns["context"] = &s.Context
	}
	for means, to := range columns {
		if column := l.Columns[means]; column != "" {
			*to = column
		}
	}
}
