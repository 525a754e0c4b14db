package result

import (
	"bufio"
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/terminal"
)

// cells are what a row, or the header where there is none, has in the columns.
func cells(columns []column, r *row) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		if r == nil {
			all[i] = c.Name
			continue
		}
		switch v := c.flat(r).(type) {
		case string:
			all[i] = strings.ToValidUTF8(v, "\uFFFD")
		case bool:
			all[i] = strconv.FormatBool(v)
		case float64:
			all[i] = strconv.FormatFloat(v, 'f', 4, 64)
		}
	}
	return all
}

// writeTSV writes a line; terminal.Escape says how texts are written.
func writeTSV(w *bufio.Writer, columns []column, r *row) error {
	all := cells(columns, r)
	for i := range all {
		all[i] = terminal.Escape(all[i])
	}
	_, err := w.WriteString(strings.Join(all, "\t") + "\n")
	return err
}

// csvWriter writes records as RFC 4180 has them, with lines that end in a line feed. Texts
// are as they are: a spreadsheet may take one that begins with = for a formula.
type csvWriter struct {
	to  io.Writer
	csv *csv.Writer
}

func newCSV(to *bufio.Writer) *csvWriter { return &csvWriter{to, csv.NewWriter(to)} }

func (w *csvWriter) write(columns []column, r *row) error {
	all := cells(columns, r)
	if len(all) == 1 && all[0] == "" { // an empty line is no record
		_, err := io.WriteString(w.to, "\"\"\n")
		return err
	}
	if err := w.csv.Write(all); err != nil {
		return err
	}
	w.csv.Flush() // to a buffer
	return w.csv.Error()
}
