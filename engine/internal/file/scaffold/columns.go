package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// Columns returns the names of the columns; for JSON, their paths.
func (r *Rows) Columns() []string {
	var names []string
	for _, c := range r.Seen.Columns {
		if list, ok := strings.CutSuffix(c.Name, "[0]"); ok {
			names = append(names, list) // the whole list may be the label
		}
		names = append(names, c.Name)
	}
	return names
}

// Has reports whether a name is the name or the position of a column or, for JSON, a path.
func (r *Rows) Has(name string) bool {
	n, err := strconv.Atoi(name)
	return slices.Contains(r.Columns(), name) || err == nil && n > 0 && n <= len(r.Seen.Columns) && r.Seen.Format.OfTexts() ||
		strings.ContainsAny(name, ".[") && !r.Seen.Format.OfTexts()
}

// Map corrects the guessed columns of text, label and id; empty: no column holds it.
func (r *Rows) Map(columns map[string]string) error {
	for means, to := range map[string]*string{"text": &r.Mapping.Text, "label": &r.Mapping.Label, "id": &r.Mapping.ID} {
		name, given := columns[means]
		if !given {
			continue
		}
		if name != "" && !r.Has(name) {
			return fmt.Errorf("%s has no column %q; it has %s", r.Path, name, strings.Join(r.Columns(), ", "))
		}
		*to = name
		if means == "label" {
			r.Unsure = ""
			r.Named = name != ""
		}
	}
	_, given := columns["label"]
	if i := slices.IndexFunc(r.Seen.Columns, func(c source.Column) bool { return c.Uncomputed }); i >= 0 && r.Mapping.Label == "" && !given {
		return fmt.Errorf("%s: formulas in column %q have no values, and may be the labels: %s; --column label= reads the rows without labels", r.Path, r.Seen.Columns[i].Name, rows.Compute)
	}
	if r.Mapping.Text == "" {
		return fmt.Errorf("%s: no column looks like texts; name it with --column text=NAME: it has %s", r.Path, strings.Join(r.Columns(), ", "))
	}
	return nil
}

// splits are names of columns that mark rows as training or test data. Such columns do not hold labels.
var splits = []string{"split", "subset", "partition", "fold", "datasplit"}

// noLabels reports whether the name of a column says that it holds no labels: it marks parts of the data, or racflow doctor
// wrote it.
func noLabels(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(splits, name) || strings.HasPrefix(name, "doctor_")
}

// guess guesses the columns, and a second choice for the label.
func (r *Rows) guess() {
	seen := r.Seen
	seen.Columns = slices.DeleteFunc(slices.Clone(seen.Columns), func(c source.Column) bool { return noLabels(c.Name) })
	r.Mapping = source.Guess(seen)
	label := r.Mapping.Label
	second := source.Guess(without(seen, label))
	if second.Text == r.Mapping.Text {
		r.Second = wholeList(second.Label)
	}
	numeric := func(name string) bool {
		return slices.ContainsFunc(seen.Columns, func(c source.Column) bool { return c.Name == name && c.Numeric })
	}
	if label != "" && !source.Usual(label) && (numeric(label) || r.Second != "" && !numeric(second.Label)) {
		why, all := strconv.Quote(wholeList(label)), "--column "+quoted("label="+wholeList(label))
		if r.Second != "" {
			why, all = why+fmt.Sprintf(" or %q", r.Second), all+" or --column "+quoted("label="+r.Second)
		}
		r.Unsure = fmt.Sprintf("%s: which column holds the labels is not certain: it may be %s. Say %s, and --column label= where none does", r.Path, why, all)
	}
	r.Mapping.Label = wholeList(label)
	if strings.HasSuffix(label, "[0][0]") {
		r.Unsure = fmt.Sprintf("%s: column %q holds lists of lists, such as marked parts of texts, and no labels of whole texts: --column label= reads the texts alone", r.Path, strings.TrimSuffix(label, "[0][0]"))
	}
}

// wholeList converts the path to a list's first element into the path of the list. For labels, the list shows whether
// there are several.
func wholeList(name string) string { return strings.TrimSuffix(name, "[0]") }

// without removes a column from what was seen.
func without(s source.Seen, name string) source.Seen {
	s.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(c source.Column) bool { return c.Name != "" && c.Name == name })
	return s
}

// ofSeveral refuses a workbook with several sheets, or a JSON object with several arrays, if the user names none. The
// reader refuses such objects in several files.
func (r *Rows) ofSeveral() error {
	if r.Form.Sheet != "" {
		return nil
	}
	files, _ := source.Files(r.Path) // the reader of the rows reports errors
	for _, path := range files {
		var names, said []string
		switch format := cmp.Or(r.Form.Format, source.FormatOf(path)); {
		case format == source.XLSX:
			names, _ = source.Sheets(path) // as above
		case format == source.JSON && path == r.Path:
			text, _ := readText(path) // as above
			names = arraysIn(gjson.ParseBytes(text), "")
		}
		if len(names) < 2 {
			continue
		}
		for _, name := range names {
			said = append(said, "--sheet "+quoted(name))
		}
		return fmt.Errorf("%s has %s: say which one counts, with %s", path, terminal.Plural(len(names), "table"), strings.Join(said, " or "))
	}
	return nil
}

// Documents is a folder, a glob or a file of documents.
type Documents struct {
	Path     string
	Files    int
	Suffixes map[string]int // number of files by suffix
	Unusable []document.File
	Characters,
	Read int // of a sample of documents, evenly spread
	Code     int             // documents of the sample with source code
	Unread   document.Unread // unread content of the sample
	UnreadIn []string        // the same for each document with unread content
	Language string
}

// readDocuments is how many documents are read as a sample.
const readDocuments = 60

func documentsAt(ctx context.Context, place string) (*Documents, error) {
	folder, err := document.Open(document.Set{Path: place})
	if err != nil {
		return nil, fmt.Errorf("look at the documents: %w", err)
	}
	defer folder.Close() //nolint:errcheck // it was only read
	files, err := folder.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the documents in %s: %w", place, err)
	}
	d := &Documents{Path: place, Suffixes: map[string]int{}, Unread: document.Unread{}}
	var usable []document.File
	for _, f := range files {
		if f.Err != nil {
			d.Unusable = append(d.Unusable, f)
			continue
		}
		usable = append(usable, f)
	}
	var texts []string
	step := max(1, len(usable)/readDocuments)
	for i, f := range usable {
		if i%step == 0 {
			text, _, err := folder.Read(ctx, f.ID)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				d.Unusable = append(d.Unusable, document.File{ID: f.ID, Err: err})
				continue
			}
			d.Read++
			d.Characters += len(text.Text)
			if d.Unread.Add(text.Unread); len(text.Unread) > 0 {
				d.UnreadIn = append(d.UnreadIn, f.ID+": "+text.Unread.String())
			}
			if text.Meta["format"] == "code" {
				d.Code++
			} else {
				texts = append(texts, text.Text[:min(len(text.Text), maxTexts)])
			}
		}
		d.Files++
		d.Suffixes[strings.ToLower(path.Ext(filepath.ToSlash(f.ID)))]++
	}
	if d.Read == 0 {
		why := "it holds no file that can be read as a document"
		if len(d.Unusable) > 0 {
			why = fmt.Sprintf("%s: %v", d.Unusable[0].ID, d.Unusable[0].Err)
		}
		return nil, fmt.Errorf("look at %s: %s", place, why)
	}
	d.Language = languageOf(texts)
	return d, nil
}

// visible returns the entries of a folder, without hidden and generated entries.
func visible(folder string) (dirs, files []fs.DirEntry) {
	entries, _ := os.ReadDir(folder) // an unreadable folder counts as empty
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"), strings.HasSuffix(name, ".crc"), disk.IsLock(name):
		case e.IsDir():
			dirs = append(dirs, e)
		default:
			files = append(files, e)
		}
	}
	return dirs, files
}
