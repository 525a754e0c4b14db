package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/source/decode"
	"github.com/racflow/racflow/engine/source/delimited"
	"github.com/racflow/racflow/engine/source/jsonrows"
	"github.com/racflow/racflow/engine/source/lines"
)

// start makes a text ready to return rows.
func (f *file) start(in *bufio.Reader) error {
	_, err := in.Peek(1)
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	if err == nil {
		in, f.compression, err = decode.Unpack(in)
	}
	if err == nil {
		f.text, err = decode.NewText(in, f.form.Encoding, f.patient)
	}
	if err != nil {
		return f.errorAt(1, err)
	}
	head, end, err := f.head()
	if err != nil {
		return f.errorAt(1, err)
	}
	f.form.Format = formOf(f.form.Format, head)
	switch f.form.Format {
	case TSV, CSV:
		return f.startDelimited(head, end)
	case JSONL:
		text := lines.New(f.text.Reader, end)
		f.lines = text.Line
		return f.startObjects(jsonrows.NewLines(text).Next, false)
	case Parquet, XLSX:
		return f.errorAt(1, fmt.Errorf("a %s file is read from its disk and not as a stream: name it as a file that is not packed; without that, its rows can come as CSV", f.form.Format))
	case JSON:
		stream := jsonrows.NewStream(f.text.Reader, f.form.Sheet)
		f.lines = stream.Line
		return f.startObjects(stream.Next, true)
	}
	return f.errorAt(1, fmt.Errorf("unknown format %q: use tsv, csv, jsonl, json, parquet or xlsx", f.form.Format))
}

// head is how a text begins, up to a line end if there is more of it, and which byte ends
// lines. Of standard input, which may be slow, it is the first line.
func (f *file) head() (head []byte, end byte, err error) {
	for n := 1; ; n = f.text.Buffered() + 1 {
		head, err = f.text.Peek(min(n, decode.Size))
		if err == nil {
			head, err = f.text.Peek(f.text.Buffered())
		}
		first := bytes.IndexAny(head, "\r\n")
		ended := first >= 0 && (head[first] == '\n' || first < len(head)-1) // else a newline may follow
		switch {
		case err == nil && len(head) < decode.Size && (f.patient || !ended):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, 0, err
		case len(bytes.TrimSpace(head)) == 0 && err != nil:
			return nil, 0, errors.New("the file is empty")
		}
		end = '\n'
		if ended && head[first] == '\r' && bytes.IndexByte(head, '\n') < 0 {
			end = '\r'
		}
		switch {
		case !f.patient && ended:
			head = head[:first+1]
		case err == nil:
			head = head[:bytes.LastIndexByte(head, end)+1]
		}
		return head, end, nil
	}
}

// formOf is the format of a text; empty: it is delimited in some way. Rows of JSON that have
// the name of a file with one array, and the reverse, are read as what they are.
func formOf(format Format, head []byte) Format {
	text := bytes.TrimLeft(head, " \t\r\n")
	if format != "" && format != JSON && format != JSONL || len(text) == 0 {
		return format
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	alone := json.Valid(first)
	switch {
	case text[0] == '[' && !(format == JSONL && alone && len(bytes.TrimSpace(rest)) > 0):
		return JSON
	case text[0] == '{' && alone && (format == JSONL || len(bytes.TrimSpace(rest)) > 0 || !jsonrows.HoldsRows(first)):
		return JSONL
	case text[0] == '{' && (format == "" || alone):
		return JSON
	}
	return cmp.Or(format, TSV)
}

// startDelimited finds out how fields are separated, where that is not given.
func (f *file) startDelimited(head []byte, end byte) error {
	skipped := max(f.form.HeaderRow-1, 0)
	if d := separator(head, end); d != "" {
		skipped = max(skipped, 1)
		f.form.Delimiter = cmp.Or(f.form.Delimiter, d)
	}
	text := lines.New(f.text.Reader, end)
	for range skipped {
		if _, err := text.Next(); err != nil && !errors.Is(err, lines.ErrTooLong) {
			return f.errorAt(text.Line(), fmt.Errorf("the file has no line %d that could name the columns", skipped+1))
		}
		_, head, _ = bytes.Cut(head, []byte{end})
	}
	style, err := f.style(head, end)
	if err != nil {
		return f.errorAt(1, err)
	}
	f.form.Delimiter = string(style.Delimiter)
	f.lines = text.Line
	records := delimited.New(text, style)
	first, err := records.Next()
	if err = cmp.Or(err, first.Err); errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return f.errorAt(max(first.Line, 1), err)
	}
	return f.startCells(first, records.Next)
}

// separator is the delimiter that a first line as Excel knows it names, such as sep=; on a line of its own.
func separator(head []byte, end byte) string {
	first, _, _ := bytes.Cut(head, []byte{end})
	d, ok := strings.CutPrefix(strings.ToLower(strings.Trim(string(first), "\"\r\n")), "sep=")
	if !ok || utf8.RuneCountInString(d) != 1 {
		return ""
	}
	return d
}

// style is how fields are separated and quoted.
func (f *file) style(head []byte, end byte) (delimited.Style, error) {
	quote := []byte(`"`)
	if f.form.Quote == NoQuote {
		quote = nil
	} else if f.form.Quote != "" {
		quote = []byte(f.form.Quote)
	}
	if len(quote) > 0 && utf8.RuneCount(quote) != 1 {
		return delimited.Style{}, fmt.Errorf("quote is one character, or %q, not %q", NoQuote, f.form.Quote)
	}
	of := func(delimiter string) delimited.Style {
		s := delimited.Style{Delimiter: []byte(delimiter), Quote: quote}
		if delimiter == "\t" && f.form.Quote == "" && f.form.Format == TSV {
			s.Quote = nil // it never has been quoted
		}
		return s
	}
	switch d := f.form.Delimiter; {
	case d != "" && (utf8.RuneCountInString(d) != 1 || d == "\n" || d == "\r"):
		return delimited.Style{}, fmt.Errorf("delimiter is one character, such as \";\" or \"\\t\", not %q", d)
	case d != "":
		return of(d), nil
	case f.form.Format == TSV:
		return delimited.Detect(head, end, of("\t"), of(","), of(";"), of("|")), nil
	}
	return delimited.Detect(head, end, of(","), of(";"), of("\t"), of("|")), nil
}

// checkDecoded refuses a row with characters that are none in the file's encoding.
func (f *file) checkDecoded(row *Row) {
	if f.text != nil && f.text.Lossy() && row.Err == nil && strings.ContainsRune(row.ID+row.Text+row.Label+row.Context, utf8.RuneError) {
		row.Err = fmt.Errorf("it is not valid %s: mend it, or name another encoding", f.text.Encoding())
	}
}

// failed is the error of a file that cannot be read to its end.
func (f *file) failed(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return f.errorAt(max(f.lines(), 1), err)
}
