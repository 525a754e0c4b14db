package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"golang.org/x/text/unicode/norm"
)

// missing returns the error of a file without the column of the text. It proposes a mapping that
// would probably work.
func (f *file) missing(names []string) error {
	guess := byName(names)
	if f.patient { // the file can be read again
		if seen, err := Sniff(f.path, f.form); err == nil && seen.Rows > 0 {
			guess = Guess(seen)
			var found []string
			for _, c := range seen.Columns {
				found = append(found, c.Name)
			}
			if len(found) > 0 { // a file may have no rows
				names = found
			}
		}
	}
	if position(names, f.mapping.Label) >= 0 {
		guess.Label = ""
	}
	if position(names, f.mapping.ID) >= 0 {
		guess.ID = ""
	}
	var advice []string
	if guess.Text != "" {
		guess.Flag = f.mapping.Flag
		advice = append(advice, fmt.Sprintf("This may be what you want: %s on the command line, or %s in the block", guess.Flags(), guess.arguments()))
	}
	if f.form.Format.OfTexts() && byName(names).Text == "" {
		advice = append(advice, `If the first line is a row already, add a header line that names the columns, or write header = false and name columns by position, as text = "1"`)
	}
	if len(advice) == 0 {
		advice = append(advice, "Name the column that holds the text: "+Mapping{Text: "NAME", Flag: f.mapping.Flag}.Flags())
	}
	return fmt.Errorf("there is no column %q; the columns are %s. %s", f.mapping.Text, quoteAll(names), strings.Join(advice, ". "))
}

// Flags returns the command-line flags that give the mapping.
func (m Mapping) Flags() string {
	return m.written(cmp.Or(m.Flag, "--column")+" %s=%s", " ", func(name string) string {
		if strings.ContainsAny(name, " \t\n'\"\\$`*?[]{}()<>|&;!#~") {
			return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
		}
		return name
	})
}

// arguments returns the arguments of a block that give the mapping.
func (m Mapping) arguments() string {
	return m.written("%s = %s", ", ", func(name string) string { return fmt.Sprintf("%q", name) })
}

func (m Mapping) written(format, between string, quote func(string) string) string {
	var all []string
	for _, c := range []struct{ means, column string }{{"text", m.Text}, {"label", m.Label}, {"id", m.ID}} {
		if c.column != "" {
			all = append(all, fmt.Sprintf(format, c.means, quote(c.column)))
		}
	}
	return strings.Join(all, between)
}

// MaxRow is the most bytes of a row that is accepted.
const MaxRow = rows.MaxLine

// Mapping says which column means what. It refers to a column by its name or by its position ("2"
// is the second); in JSON also by a path, such as "data.utterance" or "turns[0].text".
type Mapping struct {
	ID, Text, Label string   // ID and Label may be absent
	Context         string   // column of the texts' contexts; empty: none
	Gold            string   // column of the gold passages; empty: none
	Meta            []string // columns kept as metadata; nil: all others
	Labels          Labels   // how the label is written
	Fields          bool     // fill Row.Fields
	Flag            string   // command-line flag that gives columns; empty: --column

	look bool // columns are only listed: rows need no text and are not mapped
}

// Row is one row of a source.
type Row struct {
	// Line is the line on which the row starts, from 1. It identifies the row in the source: a glob
	// counts the lines of all its files. Place returns the line in the file.
	Line    int
	File    string // file of a glob that has the row; empty: the source is one file
	ID      string // empty: the row has none
	Text    string
	Label   string    // as sdk.LabelForm.Canonical writes it
	Context string    // where the text stands; may be empty
	Gold    []Gold    // passages that a search should find; nil: unknown
	Trace   sdk.Trace // of the request that brought the row; zero: none
	Meta    sdk.Meta
	// Fields are the columns that are not mapped to ID, Text or Label, in the file's order, if the
	// Mapping asks for them.
	Fields []result.Field
	Err    error // not nil, from a Reader a *RowError: the row is unusable

	before  int    // number of lines in the files before this one
	out     bool   // Form.Where excludes the row
	respelt string // the label as written, if it is read in another spelling; empty: as read
}

// Place returns the file of a glob that has the row, and the line in that file. The file is empty
// if the source is one file.
func (r Row) Place() (file string, line int) { return r.File, r.Line - r.before }

// At returns the row with another Place: a row from another process does not know its own.
func (r Row) At(file string, line int) Row {
	r.File, r.before = file, r.Line-line
	return r
}

// Unusable reports how many of all rows cannot be used, and why this row, the first of them, cannot.
func (r Row) Unusable(n, all int) string {
	file, line := r.Place()
	if file != "" {
		file += ", "
	}
	return fmt.Sprintf("%d of %d rows cannot be used; the first: %sline %d: %v", n, all, file, line, r.Err)
}

// ErrFields says that a row has other fields than the header.
var ErrFields = errors.New("fields")

// FileError says that a whole file is unreadable.
type FileError struct {
	Path         string
	Line, Column int
	Err          error // the problem and its remedy
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.Path, e.Line, e.Column, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// RowError says why a row cannot be used.
type RowError struct{ Err error }

func (e *RowError) Error() string { return e.Err.Error() }
func (e *RowError) Unwrap() error { return e.Err }

// check sets the error of a parsed row that is unusable.
func check(row *Row) {
	switch {
	case row.Err != nil:
	case !utf8.ValidString(row.ID), !utf8.ValidString(row.Text), !utf8.ValidString(row.Label), !utf8.ValidString(row.Context):
		row.Err = errNotUTF8
	case strings.TrimSpace(row.Text) == "":
		row.Err = errors.New("it has no text")
	}
}

var errNotUTF8 = rows.ErrNotUTF8

// startCells prepares a file of records for reading; the first record may name the columns.
func (f *file) startCells(first rows.Record, next func() (rows.Record, error)) error {
	names, need := make([]string, len(first.Fields)), make([]string, len(first.Fields))
	headed := f.form.Header == nil || *f.form.Header
	for i, name := range first.Fields {
		names[i] = strings.Clone(strings.TrimSpace(name))
		if need[i] = names[i]; !headed || names[i] == "" {
			names[i] = strconv.Itoa(i + 1)
			f.unnamed = append(f.unnamed, names[i])
		}
	}
	if !headed {
		need = names
	}
	where := position(names, f.form.Where[0])
	if where < 0 && f.form.Where[0] != "" {
		return f.errorAt(first.Line, f.noWhere(names))
	}
	o, err := f.mapping.cells(names)
	if errors.Is(err, errMissing) {
		err = f.missing(names)
	}
	if err != nil {
		return f.errorAt(first.Line, err)
	}
	f.columns, f.fields = func() []string { return names }, o.others()
	var cells []result.Field
	row := func(r *rows.Record) (row Row) {
		if r.Err != nil {
			return Row{Line: r.Line, Err: r.Err}
		}
		var wrong error
		if !rows.Fits(r.Fields, need) {
			wrong = fmt.Errorf("it has %d %w where the header has %d", len(r.Fields), ErrFields, len(names))
			if strings.Contains(strings.Join(slices.Concat(r.Fields, names), " "), "\r") {
				wrong = rows.ErrMixedEnds
			}
		}
		for _, i := range r.Uncomputed {
			if i < len(names) && (i == where || o.uses(i)) {
				wrong = cmp.Or(wrong, fmt.Errorf("the formula in column %q has no value: %s", names[i], rows.Compute))
			}
		}
		cells = cells[:0]
		for i, value := range r.Fields[:min(len(r.Fields), len(names))] {
			cells = append(cells, result.Field{Name: names[i], Value: value})
		}
		row = o.row(r.Line, cells, wrong)
		row.out = where >= 0 && !slices.Contains(r.Uncomputed, where) && (where >= len(r.Fields) || strings.TrimSpace(r.Fields[where]) != f.form.Where[1])
		f.checkDecoded(&row)
		return row
	}
	var ahead []Row
	if !headed {
		ahead = []Row{row(&first)}
	}
	f.next = func() (Row, error) {
		if len(ahead) > 0 {
			first := ahead[0]
			ahead = nil
			return first, nil
		}
		r, err := next()
		if err != nil {
			return Row{}, f.failed(err)
		}
		return row(&r), nil
	}
	return nil
}

// noWhere returns the error of a file without the column that Form.Where names.
func (f *file) noWhere(names []string) error {
	return fmt.Errorf("there is no column %q, which where names; the columns are %s", f.form.Where[0], quoteAll(names))
}

// firstRows is how many first objects of a regular file may lack the column of the text. If more lack it,
// the file is refused.
const firstRows = 20

// startObjects prepares a file of objects or, with arrays, of arrays for reading. If none of the first rows
// has the column of the text, it refuses the whole file with advice, instead of each row.
func (f *file) startObjects(next func() (rows.JSONRow, error), arrays bool) error {
	var members []rows.JSONMember
	var fields []result.Field
	return f.startFields(func() (int, []result.Field, error, error) {
		r, err := next()
		if err != nil {
			return 0, nil, nil, err
		}
		if r.Err == nil {
			members, r.Err = rows.JSONMembers(r.Raw, arrays)
		}
		fields = fields[:0]
		for _, m := range members {
			fields = append(fields, result.Field{Name: m.Name, Value: m.Value})
		}
		return r.Line, fields, r.Err, nil
	})
}

// startFields prepares a file for reading. next returns the line and the fields of a row, or why that row is
// invalid.
func (f *file) startFields(next func() (line int, fields []result.Field, invalid, err error)) error {
	o, where := f.mapping.object(), columnOf(f.form.Where[0])
	f.columns = func() []string { return slices.Clip(o.columns) }
	n, last := 0, 0
	read := func() (row Row, err error) {
		line, fields, invalid, err := next()
		n++
		defer func() {
			if row.Err != nil && line == last { // the line does not identify the row
				row.Err = fmt.Errorf("row %d of the array: %w", n, row.Err)
			}
			last = line
		}()
		if err != nil {
			return Row{}, f.failed(err)
		}
		if invalid != nil {
			return Row{Line: line, Err: invalid}, nil //nolint:nilerr // the row fails alone
		}
		row = o.row(line, fields, nil)
		if where.name != "" {
			value, _ := where.of(fields)
			text, _ := textOf(value, true)
			row.out = strings.TrimSpace(text) != f.form.Where[1]
		}
		f.checkDecoded(&row)
		return row, nil
	}
	var ahead []Row
	var failed error
	if f.patient {
		for len(ahead) < firstRows && failed == nil && !o.found {
			var row Row
			if row, failed = read(); failed == nil {
				ahead = append(ahead, row)
			}
		}
		if !f.mapping.look && !o.found && len(o.columns) > 0 {
			return f.errorAt(ahead[0].Line, f.missing(o.columns))
		}
		if len(ahead) == 0 && !errors.Is(failed, io.EOF) {
			return failed
		}
	}
	f.next = func() (Row, error) {
		if len(ahead) > 0 {
			row := ahead[0]
			ahead = ahead[1:]
			return row, nil
		}
		if failed != nil {
			return Row{}, failed
		}
		return read()
	}
	return nil
}

// Normal returns a text in the form in which texts are compared: Unicode NFC, lower case, with one space for
// each run of white space.
func Normal(text string) string {
	return strings.ToLower(norm.NFC.String(strings.Join(strings.Fields(text), " ")))
}
