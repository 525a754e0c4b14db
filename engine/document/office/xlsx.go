package office

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/racflow/racflow/engine/document/markdown"
)

// Bounds on what of a workbook is unpacked: in all, and of one part in memory. Larger parts are
// unpacked to temporary files.
const (
	maxWorkbook = 2 << 30
	maxInMemory = 16 << 20
)

// XLSX reads a workbook. It is an apart.Reader.
func XLSX(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("XLSX", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	f, err := excelize.OpenReader(bytes.NewReader(raw), excelize.Options{UnzipSizeLimit: maxWorkbook, UnzipXMLSizeLimit: maxInMemory, TmpDir: os.TempDir()})
	if err != nil {
		return "", "", fmt.Errorf("its XLSX cannot be read: %w%s", err, advice)
	}
	defer f.Close() //nolint:errcheck // it was only read
	w := &workbook{most: most, stop: stop}
	for _, name := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(name); err == nil && !visible {
			continue
		}
		rows, err := f.Rows(name)
		if errors.As(err, &excelize.ErrSheetNotExist{}) {
			continue // a chart
		}
		if err == nil {
			err = errors.Join(w.sheet(name, rows), rows.Close())
		}
		if errors.Is(err, errTooLong) {
			return "", "", errTooLong
		}
		if err != nil {
			return "", "", fmt.Errorf("its XLSX cannot be read: sheet %s: %w%s", name, err, advice)
		}
	}
	return strings.ToValidUTF8(w.out.String(), "\uFFFD"), a.title(), nil
}

type workbook struct {
	out  strings.Builder
	most int64
	stop time.Time
}

// sheet writes the rows of a sheet: those of one cell before the first of more are lines.
func (w *workbook) sheet(name string, rows *excelize.Rows) error {
	var before []string // rows of one cell
	size, table, begun := 0, false, false
	line := func(text string) {
		if !begun {
			if w.out.Len() > 0 {
				w.out.WriteByte('\n')
			}
			w.out.WriteString(markdown.Heading(2, name) + "\n\n")
		}
		begun = true
		w.out.WriteString(text + "\n")
	}
	for n := 0; rows.Next(); n++ {
		if n > excelize.TotalRows {
			return errors.New("it has too many rows")
		}
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if int64(w.out.Len()+size) > w.most || n%256 == 0 && time.Now().After(w.stop) {
			return errTooLong
		}
		for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
			cells = cells[:len(cells)-1]
		}
		filled := len(cells) - countEmpty(cells)
		switch {
		case filled == 0:
		case filled == 1 && !table:
			cell := markdown.OneLine(strings.Join(cells, " "))
			before, size = append(before, cell), size+len(cell)
		case !table:
			for _, text := range before {
				line(text + "\n")
			}
			before, size, table = nil, 0, true
			line(markdown.Row(cells))
			line(markdown.Rule(len(cells)))
		default:
			line(markdown.Row(cells))
		}
	}
	if len(before) == 1 {
		line(before[0])
	} else if len(before) > 1 { // one column
		line(markdown.Row(before[:1]))
		line(markdown.Rule(1))
		for cell := range slices.Values(before[1:]) {
			line(markdown.Row([]string{cell}))
		}
	}
	return rows.Error()
}

func countEmpty(cells []string) (n int) {
	for _, c := range cells {
		if strings.TrimSpace(c) == "" {
			n++
		}
	}
	return n
}
