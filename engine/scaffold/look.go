package scaffold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/language"
	"github.com/racflow/racflow/engine/source"
)

// Data is what was looked at: rows, documents, or questions about documents.
type Data struct {
	Rows      []*Rows
	Documents *Documents
}

// Look looks at files of rows, and at folders, globs and files of documents.
func Look(ctx context.Context, paths []string) (Data, error) {
	var d Data
	for _, path := range paths {
		rows, isRows, err := rowsAt(path)
		switch {
		case err != nil:
			return d, err
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
	return d, ctx.Err()
}

// rowsAt looks at a path that holds rows; false: it holds documents.
func rowsAt(path string) (*Rows, bool, error) {
	info, err := os.Stat(path)
	glob := err != nil && document.IsGlob(path)
	switch {
	case err != nil && !glob:
		return nil, false, fmt.Errorf("look at the data: %w", err)
	case err == nil && info.IsDir():
		if path = rowsIn(path); path == "" {
			return nil, false, nil
		}
	case source.Is(path):
	case glob || document.Is(path):
		return nil, false, nil
	}
	seen, err := source.Sniff(path, source.Form{})
	if err != nil || seen.Rows == 0 {
		if !source.Is(path) { // a text of prose, say
			return nil, false, nil //nolint:nilerr // it is read as a document
		}
		if err == nil {
			err = fmt.Errorf("%s holds no usable row", path)
		}
		return nil, true, fmt.Errorf("look at the data: %w", err)
	}
	if !source.Is(path) && (len(seen.Columns) < 2 || seen.Rows < 3 || 10*seen.Invalid > seen.Rows || slices.ContainsFunc(seen.Columns, sentence)) {
		return nil, false, nil
	}
	r := &Rows{Path: path, Seen: seen}
	if headless(seen) {
		no := false
		r.Form.Header = &no
		if r.Seen, err = source.Sniff(path, r.Form); err != nil {
			return nil, true, fmt.Errorf("look at the data: %w", err)
		}
		r.Seen.Notes = append(r.Seen.Notes, "the first line looks like a row, so columns are called by their numbers")
	}
	r.Mapping = source.Guess(r.Seen)
	return r, true, nil
}

// sentence reports whether a column is called by what looks like a text.
func sentence(c source.Column) bool { return len(strings.Fields(c.Name)) > 3 }

// headless reports whether the first line of a file, which names its columns, looks like
// one of its rows: it has a text, a number above numbers, or a label.
func headless(s source.Seen) bool {
	if s.Format != source.TSV && s.Format != source.CSV {
		return false
	}
	return slices.ContainsFunc(s.Columns, func(c source.Column) bool {
		_, err := strconv.ParseFloat(c.Name, 64)
		return sentence(c) && !c.Numeric || c.Numeric && err == nil || 2*c.Distinct <= s.Rows && slices.Contains(c.Values, c.Name)
	})
}

// rowsIn is a glob of all files in a folder where they hold rows and have one suffix;
// empty: it has others, too.
func rowsIn(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	suffix := ""
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		_, ext, _ := strings.Cut(name, ".")
		if e.IsDir() || !source.Is(name) || suffix != "" && ext != suffix {
			return ""
		}
		suffix = ext
	}
	if suffix == "" || document.IsGlob(folder) {
		return ""
	}
	return filepath.Join(folder, "*."+suffix)
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
