package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/source/jsonrows"
)

// Seen is what a look at a file shows.
type Seen struct {
	Form                 // as given and found out
	Compression string   // gzip or zstd; empty: none
	Notes       []string // what was found out and may be wrong, a sentence each
	Columns     []Column // in the file's order; of nested JSON the paths
	Rows        int      // that were looked at, invalid ones left out
	Invalid     int      // rows that cannot be used
	Whole       bool     // there are no others
}

// Column is what a look at a file shows of a column. Lengths are in characters.
type Column struct {
	Name                        string
	Values                      []string // the first few distinct ones
	Distinct, Empty             int
	MedianLength, LongestLength int
	Numeric                     bool // all values are numbers; there are some
	Several                     bool // it is the first of several, or in the first: the name has [0]
	Unnamed                     bool // the header has no name for it, as for the index of a data frame
}

const (
	sniffedRows   = 10_000
	sniffedBytes  = 16 << 20
	sniffedValues = 8
)

// Sniff looks at the first rows of a file, or of the files of a glob.
func Sniff(path string, f Form) (Seen, error) { return SniffStream(path, f, nil) }

// SniffStream looks at the first rows of a source as Open takes it.
func SniffStream(path string, f Form, stdin io.Reader) (Seen, error) {
	r, err := Open(path, f, Mapping{Meta: []string{}, Fields: true, look: true}, stdin)
	if err != nil {
		return Seen{}, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	seen := Seen{Compression: r.at.compression}
	l := looker{columns: map[string]*looked{}, several: map[string]bool{}}
	for seen.Rows < sniffedRows && l.bytes < sniffedBytes {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			seen.Whole = true
			break
		}
		if err != nil {
			return seen, err
		}
		if row.Err != nil {
			seen.Invalid++
			continue
		}
		seen.Rows++
		for _, field := range row.Fields {
			l.add(field.Name, field.Value, 0)
		}
	}
	seen.Form, seen.Notes, seen.Columns = r.Form(), r.Notes(), l.result(seen.Rows)
	for i, c := range seen.Columns {
		seen.Columns[i].Unnamed = slices.Contains(r.at.unnamed, c.Name)
	}
	return seen, nil
}

// looker collects what a look shows of columns.
type looker struct {
	order   []string
	columns map[string]*looked
	several map[string]bool // paths to the first of several
	bytes   int
}

// looked are the values of a column.
type looked struct {
	lengths  []int
	numbers  int
	values   []string
	distinct map[string]bool
}

// add counts a value, or those in it.
func (l *looker) add(name string, value any, depth int) {
	text := ""
	switch v := value.(type) {
	case nil:
	case string:
		text = v
	case json.RawMessage:
		if depth < 3 {
			l.inside(name, v, depth)
			return
		}
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	c := l.columns[name]
	if c == nil {
		if len(l.order) == maxColumns {
			return
		}
		c = &looked{distinct: map[string]bool{}}
		l.columns[name], l.order = c, append(l.order, name)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	l.bytes += len(text)
	c.lengths = append(c.lengths, utf8.RuneCountInString(text))
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		c.numbers++
	}
	if !c.distinct[text] {
		c.distinct[text] = true
		if len(c.values) < sniffedValues {
			c.values = append(c.values, text)
		}
	}
}

// inside counts the values in an object, and of an array the first one.
func (l *looker) inside(name string, nested json.RawMessage, depth int) {
	members, err := jsonrows.Members(nil, nested, true)
	if err != nil || len(members) == 0 {
		return
	}
	if nested[0] == '[' {
		if len(members) > 1 {
			l.several[name+"[0]"] = true
		}
		l.add(name+"[0]", decoded(members[0].Value), depth+1)
		return
	}
	for _, m := range members {
		l.add(name+"."+m.Name, decoded(m.Value), depth+1)
	}
}

func (l *looker) result(rows int) []Column {
	var all []Column
	for _, name := range l.order {
		c := l.columns[name]
		column := Column{Name: name, Values: c.values, Distinct: len(c.distinct), Empty: rows - len(c.lengths), Numeric: c.numbers > 0 && c.numbers == len(c.lengths)}
		if at := strings.LastIndex(name, "[0]"); at >= 0 {
			column.Several = l.several[name[:at+len("[0]")]]
		}
		if len(c.lengths) > 0 {
			slices.Sort(c.lengths)
			column.MedianLength, column.LongestLength = c.lengths[len(c.lengths)/2], c.lengths[len(c.lengths)-1]
		}
		all = append(all, column)
	}
	return all
}
