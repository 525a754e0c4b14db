package source

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/source/jsonrows"
	"github.com/racflow/racflow/engine/source/lines"
	"github.com/racflow/racflow/sdk"
)

// MaxRow is the length in bytes above which a row is refused.
const MaxRow = lines.Max

// Mapping says which column means what. A column is named by its name or by its position
// ("2" is the second); in JSON also by a path that leads to it, such as "data.utterance"
// or "turns[0].text".
type Mapping struct {
	ID, Text, Label string   // rows without ID or Label are fine
	Context         string   // column of the texts' contexts; empty: none
	Gold            string   // column of the gold passages; empty: none
	Meta            []string // columns kept as metadata; nil: all others
	Fields          bool     // Row.Fields is filled
	Flag            string   // of a command line, that gives columns; empty: --column

	look bool // rows need no text: nothing is mapped, and it is looked at what there is
}

// Row is one row of a source.
type Row struct {
	// Line is where it starts; 1 is the first line. It names the row among those of the
	// source: in a glob, lines are counted through all files. Place says the line of the file.
	Line    int
	File    string // in which file of a glob it stands; empty: the source is one file
	ID      string // empty: the row has none
	Text    string
	Label   string
	Context string    // says where the text stands; empty: nothing
	Gold    []Gold    // what should be found for it; nil: that is not known
	Trace   sdk.Trace // of a request that it came with; zero: none
	Meta    sdk.Meta
	// Fields are the columns that are not mapped to ID, Text or Label, in the file's order, if
	// the Mapping asks for them.
	Fields []Field
	Err    error // set: the row cannot be used

	before int  // lines of the files before this one
	out    bool // Form.Where leaves it out
}

// Place is the file of a glob in which the row stands, and the line of that file. The file
// is empty where the source is one.
func (r Row) Place() (file string, line int) { return r.File, r.Line - r.before }

// At returns the row with another Place: one that has travelled does not know its own.
func (r Row) At(file string, line int) Row {
	r.File, r.before = file, r.Line-line
	return r
}

// Field is a column of a row.
type Field struct {
	Name  string
	Value any // string, json.Number, bool, nil, or json.RawMessage of what is nested
}

// FileError says that a whole file cannot be read.
type FileError struct {
	Path         string
	Line, Column int
	Err          error // what is wrong and what to do
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.Path, e.Line, e.Column, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// check sets the error of a row that was parsed and cannot be used.
func check(row *Row) {
	switch {
	case row.Err != nil:
	case !utf8.ValidString(row.ID), !utf8.ValidString(row.Text), !utf8.ValidString(row.Label), !utf8.ValidString(row.Context):
		row.Err = errNotUTF8
	case strings.TrimSpace(row.Text) == "":
		row.Err = errors.New("it has no text")
	}
}

var errNotUTF8 = jsonrows.ErrNotUTF8
