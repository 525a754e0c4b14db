package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/source/rows"
)

// Format names the file format of rows.
type Format string

// The supported formats.
const (
	TSV     Format = "tsv"
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	JSON    Format = "json" // an array of rows, alone or in an object
	Parquet Format = "parquet"
	XLSX    Format = "xlsx" // an Excel workbook
)

// Form describes how the rows of a file are written. Zero fields are detected from the file's name and
// content.
type Form struct {
	Format    Format `json:"format,omitempty"`
	Delimiter string `json:"delimiter,omitempty"` // between the fields of TSV and CSV: one character
	Quote     string `json:"quote,omitempty"`     // around fields of TSV and CSV: one character, or NoQuote
	Encoding  string `json:"encoding,omitempty"`  // of texts: its IANA name
	Header    *bool  `json:"header,omitempty"`    // nil or true: there is a header; false: columns are called 1, 2, ...
	// HeaderRow is the row that names the columns, from 1 on, if other lines precede it; 0: the first
	// row. In a text file it counts lines.
	HeaderRow int    `json:"header_row,omitempty"`
	Sheet     string `json:"sheet,omitempty"` // name of a workbook's sheet, or of an array in a JSON object; "": the first with rows
	// Part selects the rows whose text's hash is in [from, to) of 0..1, so that parts of one file share
	// no text. Zero: all.
	Part [2]float64 `json:"part,omitzero"`
	// Where selects the rows that have a value ([1]) in a column ([0]). Zero: all.
	Where [2]string `json:"where,omitzero"`
}

// NoQuote is the Quote of a file without quoting.
const NoQuote = "none"

var formats = map[string]Format{
	".tsv": TSV, ".tab": TSV, ".csv": CSV, ".psv": CSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSON,
	".parquet": Parquet, ".pq": Parquet, ".xlsx": XLSX, ".xlsm": XLSX,
}

// OfTexts reports whether all values of the format are texts, not numbers.
func (f Format) OfTexts() bool { return f != JSONL && f != JSON && f != Parquet }

// FormatOf returns the format that a file's name implies; empty: none. The name may end with the
// suffix of a compressed file.
func FormatOf(path string) Format {
	name := strings.ToLower(filepath.Base(path))
	if packed, ok := packedName(name); ok {
		name = packed
	}
	return formats[filepath.Ext(name)]
}

func packedName(name string) (unpacked string, ok bool) {
	for _, ext := range []string{".gz", ".gzip", ".zst", ".zstd"} {
		if unpacked, ok = strings.CutSuffix(name, ext); ok {
			return unpacked, true
		}
	}
	return name, false
}

// Is reports whether the name of a file, or of a glob, implies that it holds rows.
func Is(path string) bool {
	if FormatOf(path) != "" {
		return true
	}
	_, all, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), "}"), ".{")
	if !ok {
		return false
	}
	for ext := range strings.SplitSeq(all, ",") {
		if FormatOf("."+ext) == "" {
			return false
		}
	}
	return true
}

// usual lists frequent names of columns, the likeliest first.
var usual = struct{ id, text, label []string }{
	id: []string{"id", "uuid", "guid", "rowid", "itemid", "messageid", "exampleid", "docid", "idx", "index", "nr", "no"},
	text: []string{"text", "utterance", "sentence", "query", "question", "message", "body", "content", "input", "prompt", "document", "review", "comment",
		"tweet", "post", "phrase", "request", "transcript", "description", "passage", "email", "mail", "subject", "title", "summary"},
	label: []string{"label", "intent", "category", "class", "target", "topic", "tag", "sentiment", "emotion", "answer", "expected", "goldlabel", "type", "y"},
}

// about lists words at the end of column names that describe another column, such as text_length.
var about = []string{"id", "nr", "no", "key", "count", "date", "time", "length", "len", "lang", "language", "type", "source", "url", "hash", "version", "score"}

// Guess proposes a mapping of a file's columns by their names. If the names do not suffice, it uses the
// values: texts are long and distinct, labels are few and repeat, ids are short and distinct.
func Guess(s Seen) Mapping {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	m := byName(names)
	taken := func(c Column) bool { return c.Name == m.ID || c.Name == m.Text || c.Name == m.Label }
	best := func(worth func(Column) float64) string {
		name, most := "", 0.0
		for _, c := range s.Columns {
			if w := worth(c); w > most && !taken(c) {
				name, most = c.Name, w
			}
		}
		return name
	}
	if m.Text == "" {
		m.Text = best(func(c Column) float64 {
			if c.Numeric || 2*c.Distinct < s.Rows-c.Empty {
				return 0
			}
			return float64(c.MedianLength)
		})
	}
	if m.Label == "" {
		m.Label = best(func(c Column) float64 {
			if filled := s.Rows - c.Empty; c.Distinct < 2 || 3*c.Distinct > filled || 2*filled < s.Rows || c.LongestLength > 100 {
				return 0
			} else if c.Numeric { // probably a count or a score
				return float64(c.Distinct) / float64(filled) / 1000
			}
			return float64(c.Distinct)
		})
	}
	if m.ID == "" {
		m.ID = best(func(c Column) float64 {
			if c.Empty > 0 || c.Distinct < s.Rows || c.Distinct < 2 || c.LongestLength > 64 ||
				slices.ContainsFunc(c.Values, func(v string) bool { return strings.ContainsFunc(v, unicode.IsSpace) }) {
				return 0
			}
			return 1 / float64(1+c.MedianLength)
		})
	}
	return m
}

// Usual reports whether a column has a frequent name of texts or labels.
func Usual(name string) bool {
	return slices.ContainsFunc(slices.Concat(usual.text, usual.label), func(word string) bool { return says(name, word, true) })
}

// byName returns the mapping that the names of columns imply.
func byName(names []string) (m Mapping) {
	take := func(usual []string) string {
		for _, part := range []bool{false, true} {
			for _, word := range usual {
				for _, name := range names {
					if name != m.Text && name != m.Label && name != m.ID && says(name, word, part) {
						return name
					}
				}
			}
		}
		return ""
	}
	m.Text = take(usual.text)
	m.Label = take(usual.label)
	m.ID = take(usual.id)
	return m
}

// says reports whether a name equals a word or, with part, begins or ends with that word. For a path,
// it uses the last member.
func says(name, word string, part bool) bool {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		name = name[at+1:]
	}
	words := strings.FieldsFunc(spelt(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return false
	}
	is := func(text string) bool { return text == word || text == word+"s" }
	last := words[len(words)-1]
	return is(strings.Join(words, "")) || part && len(word) > 1 && (is(last) || is(words[0]) && !slices.Contains(about, last))
}

// spelt returns a name in lower case, with a space before each capital that begins a word.
func spelt(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

// Seen describes a file by its first rows.
type Seen struct {
	Form                 // given or detected
	Compression string   // gzip or zstd; empty: none
	Notes       []string // uncertain detections, a sentence each
	Columns     []Column // in the file's order; for nested JSON the paths
	Rows        int      // number of rows read, without invalid ones
	Invalid     int      // number of unusable rows
	First       Row      // the first unusable row
	Whole       bool     // these are all rows of the file
}

// Column describes a column by the values seen. Lengths are in characters.
type Column struct {
	Name                        string
	Values                      []string // the first few distinct ones
	Distinct, Empty             int
	MedianLength, LongestLength int
	Numeric                     bool // there are values, and all are numbers
	Several                     bool // the first element of a longer array, or inside one: the name has [0]
	Unnamed                     bool // the header does not name the column, as for the index of a data frame
	Uncomputed                  bool // the column has formulas without a value
}

const (
	sniffedRows   = 10_000
	sniffedBytes  = 16 << 20
	sniffedValues = 8
)

// Sniff reads the first rows of a file, or of the files of a glob.
func Sniff(path string, f Form) (Seen, error) { return SniffStream(path, f, nil) }

// SniffStream reads the first rows of a source, with the same path and stdin as Open.
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
			if seen.Invalid++; seen.Invalid == 1 {
				seen.First = row
			}
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
		seen.Columns[i].Uncomputed = r.at.uncomputed[slices.Index(r.at.columns(), c.Name)] > 0
	}
	return seen, nil
}

// looker collects the columns of the first rows.
type looker struct {
	order   []string
	columns map[string]*looked
	several map[string]bool // paths into the first element of an array with several elements
	bytes   int
}

// looked collects the values of a column.
type looked struct {
	lengths  []int
	numbers  int
	values   []string
	distinct map[string]bool
}

// add counts a value or, if nested, the values in it.
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

// inside counts the values in an object, or in the first element of an array.
func (l *looker) inside(name string, nested json.RawMessage, depth int) {
	members, err := rows.JSONMembers(nested, true)
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
