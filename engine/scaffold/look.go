package scaffold

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/language"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/source/decode"
)

// Data is what was looked at: rows, documents, or questions about documents.
type Data struct {
	Rows      []*Rows
	Documents *Documents
}

// How says how data is read, in place of what is found out.
type How struct {
	Form source.Form
	As   string // one of Forms; empty: that is found out
}

// Look looks at files of rows, and at folders, globs and files of documents.
func Look(ctx context.Context, paths []string, how How) (Data, error) {
	var d Data
	for _, path := range paths {
		rows, isRows, err := rowsAt(path, how)
		switch {
		case err != nil:
			return d, fmt.Errorf("look at the data: %w", err)
		case isRows:
			d.Rows = append(d.Rows, rows)
		case d.Documents != nil:
			return d, fmt.Errorf("%s and %s are documents both, and a knowledge has one folder: name the folder that both are in, or write a file for each", d.Documents.Path, path)
		default:
			if d.Documents, err = documentsAt(ctx, path); err != nil {
				return d, err
			}
		}
	}
	if len(paths) == 1 && len(d.Rows) == 1 {
		d.divide()
	}
	return d, ctx.Err()
}

// rowsAt looks at a path that holds rows; false: it holds documents.
func rowsAt(path string, how How) (*Rows, bool, error) {
	info, err := os.Stat(path)
	glob := err != nil && document.IsGlob(path)
	switch {
	case err != nil && !glob:
		return nil, false, err
	case how.As == asDocuments:
		return nil, false, nil
	case err == nil && !info.IsDir():
		if err := refuse(path); err != nil {
			return nil, true, err
		}
	}
	if !glob && how.Form == (source.Form{}) {
		form, rows := exportIn(path, info.IsDir(), how.As)
		switch {
		case form != nil:
			r := &Rows{Path: path, From: form, converted: rows.rows.Bytes()}
			r.Seen, err = source.SniffStream("-", source.Form{Format: source.JSONL}, r.stream())
			r.Seen.Notes = append(r.Seen.Notes, rows.left...)
			r.guess()
			return r, true, err
		case how.As != "":
			return nil, true, fmt.Errorf("%s has not the form %s", path, how.As)
		}
	}
	r := &Rows{Path: path, Form: how.Form}
	switch {
	case err == nil && info.IsDir():
		if r.Path, err = rowsIn(path); r.Path == "" {
			return nil, false, err
		}
	case source.Is(path), how.Form.Format != "":
	case glob || document.Is(path):
		return nil, false, nil
	}
	mustBe := source.Is(r.Path) || how.Form != (source.Form{})
	r.choose()
	if err := r.sniff(mustBe); err != nil && mustBe {
		return nil, true, err
	} else if err != nil { // a text of prose, say
		return nil, false, nil //nolint:nilerr // it is read as a document
	}
	if !mustBe && (len(r.Seen.Columns) < 2 || r.Seen.Rows < 3 || 10*r.Seen.Invalid > r.Seen.Rows || slices.ContainsFunc(r.Seen.Columns, sentence)) {
		return nil, false, nil
	}
	if r.Seen.Format == source.JSONL && r.Seen.Rows == 1 && source.FormatOf(r.Path) == source.JSON && how.Form.Format == "" {
		return nil, true, fmt.Errorf("%s is one object without an array of rows: write each row as an object on a line of its own, with pandas by to_json('rows.jsonl', orient='records', lines=True); --format jsonl takes it for one row", path)
	}
	if r.Form.Header == nil && r.Form.HeaderRow == 0 && headless(r.Seen) {
		no := false
		r.Form.Header = &no
		if r.Seen, err = source.Sniff(r.Path, r.Form); err != nil {
			return nil, true, err
		}
		r.Seen.Notes = append(r.Seen.Notes, "the first line looks like a row, so columns are called by their numbers; --header 1 says otherwise")
	}
	if r.Form.Sheet != how.Form.Sheet {
		r.Seen.Notes = append(r.Seen.Notes, fmt.Sprintf("of several tables, %q is read; --sheet says otherwise", r.Form.Sheet))
	}
	r.guess()
	return r, true, nil
}

// sniff looks at the rows, and for the row that names their columns where it is not the first.
func (r *Rows) sniff(titled bool) (err error) {
	if r.Seen, err = source.Sniff(r.Path, r.Form); titled && (err != nil || r.Seen.Rows == 0 || r.untitled()) {
		if row := r.headerRow(); row > 0 {
			r.Form.HeaderRow = row
			r.Seen, err = source.Sniff(r.Path, r.Form)
			r.Seen.Notes = append(r.Seen.Notes, fmt.Sprintf("row %d names the columns; --header says otherwise", row))
		}
	}
	if err == nil && r.Seen.Rows == 0 {
		err = fmt.Errorf("%s holds no usable row: if lines stand before the names of the columns, --header ROW says in which row these are", r.Path)
	}
	return err
}

// refuse returns what can be done with a file whose rows nobody can read, by how it begins.
func refuse(path string) error {
	if source.Is(path) || document.Is(path) || document.IsWorkbook(path) {
		return nil // the one who reads it says so
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	var head [512]byte
	n, _ := io.ReadFull(in, head[:]) // a short file is whole
	err = decode.Refuse(head[:n])
	if err == nil || bytes.HasPrefix(head[:], []byte("PAR1")) {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), "FILE", path)
	if z, zerr := zip.OpenReader(path); zerr == nil {
		defer z.Close() //nolint:errcheck // it was only read
		var names []string
		for _, f := range z.File {
			if names = append(names, f.Name); f.Name == "[Content_Types].xml" { // an office file by another name
				return nil
			}
		}
		folder := strings.TrimSuffix(path, filepath.Ext(path))
		text = fmt.Sprintf("the file is a zip archive of %s: unpack it, with unzip -d %s %s, and then: racflow init %[2]s", list(names), quoted(folder), quoted(path))
		if len(names) == 1 {
			text += "/" + quoted(names[0])
		}
	}
	return fmt.Errorf("%s: %s", path, text)
}

// sentence reports whether a column is called by what looks like a text.
func sentence(c source.Column) bool { return len(strings.Fields(c.Name)) > 3 }

// headless reports whether the first line of a file, which names its columns, looks like
// one of its rows: it has a text, a number above numbers, or a label.
func headless(s source.Seen) bool {
	if s.Format != source.TSV && s.Format != source.CSV {
		return false
	}
	named := slices.ContainsFunc(s.Columns, func(c source.Column) bool { return !c.Unnamed && source.Usual(c.Name) })
	return slices.ContainsFunc(s.Columns, func(c source.Column) bool {
		if c.Unnamed {
			return false
		}
		_, err := strconv.ParseFloat(c.Name, 64)
		return sentence(c) && !c.Numeric && !named || c.Numeric && err == nil || 2*c.Distinct <= s.Rows && slices.Contains(c.Values, c.Name) && !named
	})
}

// untitled reports whether the names of columns are elsewhere: more of them lack one than the index of a
// data frame, or most rows have other fields.
func (r *Rows) untitled() bool {
	n := 0
	for _, c := range r.Seen.Columns {
		if c.Unnamed {
			n++
		}
	}
	return r.Form.Header == nil && r.Form.HeaderRow == 0 && (n > 1 || n == 1 && !r.Seen.Columns[0].Unnamed || r.Seen.Invalid > r.Seen.Rows)
}

// headerRow looks for the row that names all columns; 0: there is none.
func (r *Rows) headerRow() (row int) {
	if r.Form.Header != nil || r.Form.HeaderRow != 0 { // a person has said it
		return 0
	}
	form, named := r.Form, ""
	for form.HeaderRow = 2; form.HeaderRow <= 15; form.HeaderRow++ {
		seen, err := source.Sniff(r.Path, form)
		try := Rows{Path: r.Path, Seen: seen}
		names := strings.Join(try.Columns(), "\t")
		switch {
		case row > 0 && names != named || err == nil && !seen.Format.OfTexts():
			return row
		case err == nil && seen.Rows > 0 && len(seen.Columns) > 1 && !try.untitled() && !slices.ContainsFunc(seen.Columns, sentence) && !headless(seen):
			row, named = form.HeaderRow, names // and those before the next blank row
		}
	}
	return row
}

// rowsIn is a glob of all files in a folder where they hold rows and have one suffix;
// empty: it has others, too.
func rowsIn(folder string) (string, error) {
	dirs, files := visible(folder)
	suffix := ""
	for _, f := range files {
		name := f.Name()
		if strings.HasSuffix(name, ".arrow") {
			return "", fmt.Errorf("%s is a folder of Arrow files, which are binary: write the rows as Parquet, with python3 -c \"import datasets; datasets.load_from_disk('%[1]s').to_parquet('rows.parquet')\"", folder)
		}
		_, ext, _ := strings.Cut(name, ".")
		if !source.Is(name) || suffix != "" && ext != suffix {
			return "", nil
		}
		suffix = ext
	}
	if suffix == "" || len(dirs) > 0 || document.IsGlob(folder) {
		return "", nil
	}
	return filepath.Join(folder, "*."+suffix), nil
}

// maxTexts bounds how many texts are kept for telling their language.
const maxTexts = 5000

// sample keeps some texts, evenly spread.
type sample struct {
	texts []string
	step  int
	seen  int
}

func (s *sample) add(text string) {
	if s.step == 0 {
		s.step = 1
	}
	if s.seen++; s.seen%s.step != 0 {
		return
	}
	const enough = 500 // bytes of a text
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "")
	}
	if s.texts = append(s.texts, text); len(s.texts) == maxTexts {
		for i := range maxTexts / 2 {
			s.texts[i] = s.texts[2*i+1]
		}
		s.texts, s.step = s.texts[:maxTexts/2], 2*s.step
	}
}

func (s *sample) languages() []language.Share {
	return language.Mix(func(yield func(string) bool) {
		for _, text := range s.texts {
			if !yield(text) {
				return
			}
		}
	})
}
