package pipeline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/source/decode"
)

// formArguments say how the rows of a file are written.
var formArguments = []string{"format", "delimiter", "quote", "encoding", "header", "header_row", "sheet", "part", "where"}

// form reads how the rows of a file are written.
func (a arguments) form(path string) source.Form {
	f := source.Form{Format: source.FormatOf(path)}
	if format := a.choice("format", "", grammar.Formats()...); format != "" {
		f.Format = source.Format(format)
	}
	f.Delimiter, f.Quote = a.character("delimiter"), a.character("quote", source.NoQuote)
	f.Encoding, f.Sheet = a.encoding(), a.text("sheet", "")
	if v, _, ok := a.value("header", cty.Bool); ok && v.False() {
		header := false
		f.Header = &header
	}
	f.HeaderRow = a.int("header_row", 0, 1)
	if f.HeaderRow > 0 && f.Header != nil {
		a.errorAt(a.attrs["header_row"].NameRange, "Contradiction", "header_row names the row with the names of the columns, and header = false says that there is none: write one of them.")
	}
	f.Part, f.Where = a.part(), a.where()
	return f
}

// where reads which value of a column the rows have that count.
func (a arguments) where() (where [2]string) {
	v, at, ok := a.value("where", cty.Map(cty.String))
	if !ok {
		return where
	}
	for name, value := range v.AsValueMap() {
		if v.LengthInt() == 1 && name != "" && !value.IsNull() {
			return [2]string{name, strings.TrimSpace(value.AsString())}
		}
	}
	a.errorAt(at, "Value out of range", "where has one column and the value that it has in the rows that count, such as { split = \"train\" }.")
	return where
}

// character reads a text of one character, or one of the words that stand for something else.
func (a arguments) character(name string, words ...string) string {
	v, at, ok := a.value(name, cty.String)
	if !ok || slices.Contains(words, v.AsString()) || v.AsString() == "" {
		return a.text(name, "")
	}
	if utf8.RuneCountInString(v.AsString()) != 1 || strings.ContainsAny(v.AsString(), "\r\n") {
		a.errorAt(at, "Value out of range", "%s is one character, such as \";\", \"|\" or \"\\t\", not %q.", name, v.AsString())
		return ""
	}
	return v.AsString()
}

// encoding reads the name of an encoding.
func (a arguments) encoding() string {
	v, at, ok := a.value("encoding", cty.String)
	if !ok || v.AsString() == "" {
		return ""
	}
	if _, err := decode.Encoding(v.AsString()); err != nil {
		a.errorAt(at, "Unknown encoding", "%v.", err)
		return ""
	}
	return v.AsString()
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
	columns, given := map[string]*string{"id": &s.ID, "text": &s.Text, "label": &s.Label}, l.Columns
	if input {
		columns["gold"], s.Flag = &s.Gold, "--column"
	} else {
		columns["context"], s.Flag, given = &s.Context, "--knowledge-column", l.KnowledgeColumns
	}
	for means, to := range columns {
		if column := given[means]; column != "" {
			*to = column
		}
	}
}
