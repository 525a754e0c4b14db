package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// row is an item with its result.
type row struct {
	item   outcome.Result
	result result.Result
}

// column is a column of results. A nil value means none.
type column struct {
	Column
	chosen bool             // written only if Options.Columns names it
	value  func(r *row) any // as in JSON
	plain  func(r *row) any // in formats without nesting: a string, bool, float64 or nil; nil: value
	typed  func(r *row) any // with the type of Column.Kind; nil: plain
}

func (c column) flat(r *row) any {
	if c.plain != nil {
		return c.plain(r)
	}
	return c.value(r)
}

func (c column) cell(r *row) any {
	if c.typed != nil {
		return c.typed(r)
	}
	return c.flat(r)
}

// usual are the default columns of tables. A column never changes its place.
var usual = []string{
	"id", "text", "expected", "answer", "agreement", "confidence", "unknown", "labels", "runner_up", "flagged", "reason",
	"error", "citations", "candidates", "missing",
}

// plains converts columns with nested values for formats without nesting; other nested values are
// JSON there, too.
var plains = map[string]func(r *row) any{
	"labels": func(r *row) any { return filled(LabelsText(r.result.Labels)) },
	"error": func(r *row) any {
		if r.item.Failure == nil {
			return nil
		}
		return fmt.Sprintf("%s: %v", r.item.Place(), r.item.Failure)
	},
	"citations": func(r *row) any { return filled(cited(r.item.Citations)) },
	"candidates": func(r *row) any {
		var ids []string
		for _, c := range r.result.Candidates {
			ids = append(ids, c.ID)
		}
		return filled(strings.Join(ids, "; "))
	},
	"missing": func(r *row) any { return filled(strings.Join(r.result.Missing, "; ")) },
	"decided": func(r *row) any {
		if r.result.Decided == nil {
			return nil
		}
		return r.result.Decided.String()
	},
}

// own are racflow's own columns: the fields of a Result, the usual ones first.
var own = ownColumns()

func ownColumns() (all []column) {
	kinds := map[reflect.Kind]ColumnKind{reflect.String: TextColumn, reflect.Float64: FloatColumn, reflect.Bool: BoolColumn}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[result.Result]()) {
		name, omit, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		kind, single := kinds[f.Type.Kind()]
		c := column{Column: Column{Name: name, Kind: kind, Optional: !single || omit != "" || f.Type == reflect.TypeFor[result.Answer]()}}
		c.chosen, c.plain = !slices.Contains(usual, name), plains[name]
		c.value = func(r *row) any {
			v := reflect.ValueOf(&r.result).Elem().FieldByIndex(f.Index)
			switch {
			case c.Optional && v.IsZero():
				return nil
			case v.Kind() == reflect.String:
				return v.String() // an Answer is text, too
			}
			return v.Interface()
		}
		if !single && c.plain == nil {
			c.plain = func(r *row) any { return encoded(c.value(r)) }
		}
		all = append(all, c)
	}
	place := func(c column) int {
		if c.chosen {
			return len(usual)
		}
		return slices.Index(usual, c.Name)
	}
	slices.SortStableFunc(all, func(a, b column) int { return place(a) - place(b) })
	return all
}

// encoded is a value as JSON, for formats without nesting.
func encoded(value any) any {
	if value == nil {
		return nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err.Error() // results hold nothing that cannot be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// LabelsText writes labels with their confidences for people.
func LabelsText(labels []sdk.LabelConfidence) string {
	var all []string
	for _, l := range labels {
		all = append(all, fmt.Sprintf("%s (%.3f)", l.Label, l.Confidence))
	}
	return strings.Join(all, sdk.LabelSeparator)
}

func filled(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// prefix precedes the name of an input's column if racflow has a column of that name.
const prefix = "input_"

// of returns a column of the input. In files with columns, all rows have the column at the same
// place.
func (in InputColumn) of(name string, place int) column {
	find := func(r *row) any {
		fields := r.item.Fields
		if place < len(fields) && fields[place].Name == in.Name {
			return fields[place].Value
		}
		if at := slices.IndexFunc(fields, func(f result.Field) bool { return f.Name == in.Name }); at >= 0 {
			return fields[at].Value
		}
		return nil
	}
	return column{
		Column: Column{Name: name, Kind: in.kind.columnar(), Optional: true},
		value:  find, plain: func(r *row) any { return plain(find(r)) }, typed: func(r *row) any { return in.kind.typed(find(r)) },
	}
}

// columns returns the columns to write.
func (o Options) columns() ([]column, error) {
	taken := map[string]bool{"": true}
	all := slices.DeleteFunc(slices.Clone(own), func(c column) bool { return c.Name == "labels" && o.Input.Form == sdk.LabelForm{} })
	for _, c := range all {
		taken[c.Name] = true
	}
	for i, c := range o.Input.Columns {
		name := c.Name
		for taken[strings.ToLower(name)] {
			name = prefix + name
		}
		taken[strings.ToLower(name)] = true
		all = append(all, c.of(name, i))
	}
	if o.Columns == nil {
		return slices.DeleteFunc(all, func(c column) bool {
			return c.Name == "expected" && !o.Input.Labels || c.chosen && !(c.Name == "fields" && o.Input.Open)
		}), nil
	}
	if len(o.Columns) == 0 {
		return nil, fmt.Errorf("name at least one column of %s", list(all))
	}
	var chosen []column
	for _, name := range o.Columns {
		at := slices.IndexFunc(all, func(c column) bool { return c.Name == name })
		switch {
		case slices.ContainsFunc(chosen, func(c column) bool { return c.Name == name }):
			return nil, fmt.Errorf("the column %q is named twice", name)
		case at >= 0:
			chosen = append(chosen, all[at])
		case o.Input.Open && name != "":
			field, prefixed := strings.CutPrefix(name, prefix)
			if !prefixed || !taken[strings.ToLower(field)] {
				field = name
			}
			chosen = append(chosen, InputColumn{field, text}.of(name, 0))
		default:
			return nil, fmt.Errorf("there is no column %q: name some of %s", name, list(all))
		}
	}
	return chosen, nil
}

func list(all []column) string {
	names := make([]string, len(all))
	for i, c := range all {
		if names[i] = c.Name; strings.ContainsAny(c.Name, ", \"\t\n") {
			quoted, _ := json.Marshal(c.Name) // a string always encodes
			names[i] = string(quoted)
		}
	}
	return strings.Join(names, ", ")
}

// plain returns a field's value for formats without nesting: nested values become JSON on one line.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case json.RawMessage:
		var line bytes.Buffer
		if json.Compact(&line, v) != nil {
			return string(v)
		}
		return line.String()
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	}
	return value
}

// formats of results.
const (
	JSONL   = "jsonl"
	TSV     = "tsv"
	CSV     = "csv"
	Parquet = "parquet"
	Table   = "table"
)

// formats are all formats.
var formats = []string{JSONL, TSV, CSV, Parquet, Table}

// Compressions of results.
const (
	gz  = "gz"
	zst = "zst"
)

func unknownFormat(format string) error {
	last := len(formats) - 1
	return fmt.Errorf("unknown format %q: use %s or %s", format, strings.Join(formats[:last], ", "), formats[last])
}

// CheckFormat returns an error for an unknown format.
func CheckFormat(format string) error {
	if !slices.Contains(formats, format) {
		return unknownFormat(format)
	}
	return nil
}

// Named returns the format and the compression that a file's name implies; empty: none.
func Named(name string) (format, compression string) {
	ext := extension(name)
	if ext == gz || ext == zst {
		compression = ext
		ext = extension(strings.TrimSuffix(name, filepath.Ext(name)))
	}
	switch ext {
	case "ndjson":
		return JSONL, compression
	case JSONL, TSV, CSV, Parquet:
		return ext, compression
	}
	return "", compression
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
}

// pack returns a writer that compresses results on their way to w. Its Close leaves w open.
func pack(w io.Writer, format string, o Options) (io.WriteCloser, error) {
	if o.Compression != "" && (format == Parquet || format == Table) {
		return nil, fmt.Errorf("%s is not written as .%s: leave that out of the name", format, o.Compression)
	}
	switch o.Compression {
	case "":
		return loose{w}, nil
	case gz:
		return gzip.NewWriter(w), nil
	case zst:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) // makes the bytes reproducible
	}
	return nil, errors.New("unknown compression: use gz or zst")
}

// loose compresses nothing.
type loose struct{ io.Writer }

func (loose) Close() error { return nil }
