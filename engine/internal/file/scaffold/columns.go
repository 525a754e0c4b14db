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

	"github.com/racflow/racflow/engine/internal/knowledge/document"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/show/terminal"
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

// Has reports whether a name is that of a column, its position or, for JSON, a path.
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
		if means == "label" && name != "" {
			r.Named, r.AsIs = true, true
		}
		r.Unsure = slices.DeleteFunc(r.Unsure, func(why string) bool { return strings.Contains(why, "holds the "+means) })
	}
	if r.Mapping.Text == "" {
		return fmt.Errorf("%s: no column looks like texts; name it with --column text=NAME: it has %s", r.Path, strings.Join(r.Columns(), ", "))
	}
	return nil
}

// guess guesses the columns, and second choices.
func (r *Rows) guess() {
	seen := r.Seen
	if column, _ := splitIn(seen); column != "" {
		seen = without(seen, column)
	}
	r.Mapping = source.Guess(seen)
	r.Second.Text = source.Guess(without(seen, r.Mapping.Text, r.Mapping.Label, r.Mapping.ID)).Text
	second := source.Guess(without(seen, r.Mapping.Label))
	if second.Text == r.Mapping.Text {
		r.Second.Label = whole(second.Label)
	}
	doubt := func(means, guess, other, none string) {
		why, all := strconv.Quote(guess), "--column "+quoted(means+"="+guess)
		if other != "" {
			why, all = why+fmt.Sprintf(" or %q", other), all+" or --column "+quoted(means+"="+other)
		}
		r.Unsure = append(r.Unsure, fmt.Sprintf("%s: which column holds the %ss is not certain: it may be %s. Say %s%s", r.Path, means, why, all, none))
	}
	column := func(name string) (c source.Column) {
		if at := slices.IndexFunc(seen.Columns, func(c source.Column) bool { return c.Name == name }); at >= 0 {
			c = seen.Columns[at]
		}
		return c
	}
	if text, other := column(r.Mapping.Text), column(r.Second.Text); text.Name != "" && !source.Usual(text.Name) && 2*other.MedianLength >= text.MedianLength && other.Name != "" && r.Form.Header == nil {
		doubt("text", text.Name, other.Name, "")
	}
	if label := column(r.Mapping.Label); label.Name != "" && !source.Usual(label.Name) && (label.Numeric || r.Second.Label != "" && !column(r.Second.Label).Numeric) {
		doubt("label", whole(label.Name), r.Second.Label, ", and --column label= where none does")
	}
	r.Mapping.Label = whole(r.Mapping.Label)
}

// whole returns the path of a list for the path to its first element: for labels, the list shows
// whether there are several.
func whole(name string) string { return strings.TrimSuffix(name, "[0]") }

// without removes some columns from what was seen.
func without(s source.Seen, names ...string) source.Seen {
	s.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(c source.Column) bool { return c.Name != "" && slices.Contains(names, c.Name) })
	return s
}

// splitIn returns the column that marks rows as training or test data, with its values by meaning; empty:
// there is none.
func splitIn(s source.Seen) (column string, values map[string]string) {
	for _, c := range s.Columns {
		if !slices.Contains([]string{"split", "subset", "partition", "fold", "set", "datasplit", "dataset", "datasettype", "mltag"}, strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(c.Name))) {
			continue
		}
		values := map[string]string{}
		for _, v := range c.Values {
			if kind := splitOf(v); kind != "" {
				values[kind] = strings.TrimSpace(v)
			}
		}
		if c.Distinct == len(c.Values) && c.Distinct <= len(values)+1 && values["train"] != "" && len(values) > 1 {
			return c.Name, values
		}
	}
	return "", nil
}

// divide splits rows into those to learn from and those to try the pipeline on, if a column marks them.
func (d *Data) divide() {
	known := d.Rows[0]
	column, values := splitIn(known.Seen)
	if column == "" || known.Mapping.Label == "" || known.From != nil {
		return
	}
	tried, used := *known, cmp.Or(values["test"], values["validation"])
	known.Form.Where, tried.Form.Where, tried.Other = [2]string{column, values["train"]}, [2]string{column, used}, true
	note := fmt.Sprintf("column %q says what is for training: the pipeline knows the rows of %q and is tried on those of %q", column, values["train"], used)
	if other := values["validation"]; other != "" && other != used {
		note += fmt.Sprintf("; those of %q are not used", other)
	}
	known.Seen.Notes = append(known.Seen.Notes, note)
	d.Rows = append(d.Rows, &tried)
}

// choose chooses the sheet of a workbook, or the array of a JSON object: the first with texts and labels, or else with rows.
func (r *Rows) choose() {
	format := cmp.Or(r.Form.Format, source.FormatOf(r.Path))
	if r.Form.Sheet != "" || source.IsGlob(r.Path) || format != source.XLSX && format != source.JSON {
		return
	}
	var names []string
	if format == source.XLSX {
		names, _ = source.Sheets(r.Path) // the reader of the rows reports errors
	} else if text, err := readText(r.Path); err == nil {
		for _, m := range objectOf(text) {
			if in := elements(m.Value); len(in) > 0 && strings.IndexByte("[{", in[0][0]) >= 0 {
				names = append(names, m.Name)
			}
		}
	}
	if len(names) < 2 {
		return
	}
	var tables, texts []Rows
	for _, name := range names {
		try := Rows{Path: r.Path, Form: r.Form}
		try.Form.Sheet = name
		if try.sniff(true) != nil || len(try.Seen.Columns) < 2 {
			continue
		}
		if tables = append(tables, try); source.Guess(try.Seen).Text != "" && source.Guess(try.Seen).Label != "" {
			texts = append(texts, try)
		}
	}
	if len(texts) > 0 {
		tables = texts
	}
	if len(tables) == 0 {
		return
	}
	r.Form.Sheet = tables[0].Form.Sheet
	if len(tables) > 1 {
		var all, said []string
		for _, t := range tables {
			all = append(all, fmt.Sprintf("%q", clean(t.Form.Sheet)))
			said = append(said, "--sheet "+quoted(t.Form.Sheet))
		}
		r.Unsure = append(r.Unsure, fmt.Sprintf("%s has %s of rows, %s: say which one counts, with %s", r.Path, terminal.Plural(len(tables), "table"), strings.Join(all, ", "), strings.Join(said, " or ")))
	}
}

// Documents is a folder, a glob or a file of documents.
type Documents struct {
	Path     string
	Files    int
	Suffixes map[string]int // number of files by suffix
	Unusable []document.File
	Characters,
	Read int // of a sample of documents, evenly spread
	Code      int // documents of the sample with source code
	Languages []source.LanguageShare
}

// readDocuments is how many documents are read to find out what they contain.
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
	d := &Documents{Path: place, Suffixes: map[string]int{}}
	var usable []document.File
	for _, f := range files {
		if f.Err != nil {
			d.Unusable = append(d.Unusable, f)
			continue
		}
		usable = append(usable, f)
	}
	var texts sample
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
			if text.Meta["format"] == "code" {
				d.Code++
			} else {
				for line := range strings.Lines(text.Text) {
					texts.add(line)
				}
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
	d.Languages = texts.languages()
	return d, nil
}

// visible returns the entries of a folder, without hidden and generated ones.
func visible(folder string) (dirs, files []fs.DirEntry) {
	entries, _ := os.ReadDir(folder) // an unreadable folder counts as empty
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"), strings.HasSuffix(name, ".crc"):
		case e.IsDir():
			dirs = append(dirs, e)
		default:
			files = append(files, e)
		}
	}
	return dirs, files
}

// dialogflow reads the phrases of an unpacked agent of Dialogflow ES.
func dialogflow(d *data, c *converted) bool {
	_, files := visible(filepath.Join(d.folder, "intents"))
	for _, f := range files {
		intent, _, ok := strings.Cut(f.Name(), "_usersays_")
		if !ok {
			continue
		}
		text, err := readText(filepath.Join(d.folder, "intents", f.Name()))
		if err != nil {
			c.leave("files that are no text were left out")
		}
		for _, phrase := range elements(text) {
			said := ""
			for _, part := range elements(objectOf(phrase).get("data")) {
				said += objectOf(part).text("text")
			}
			c.add(field{"text", said}, field{"label", intent})
		}
	}
	return true
}

// labelFolders reads folders of texts that are named by their label. It only accepts names with the suffix
// .txt or none: Markdown and the like are documents.
func labelFolders(d *data, c *converted) bool {
	dirs, files := visible(d.folder)
	if len(dirs) < 2 || slices.ContainsFunc(files, func(f fs.DirEntry) bool { return !strings.HasPrefix(strings.ToLower(f.Name()), "readme") }) {
		return false
	}
	for _, label := range dirs {
		inner, files := visible(filepath.Join(d.folder, label.Name()))
		for _, f := range files {
			if ext := filepath.Ext(f.Name()); ext != ".txt" && strings.Trim(ext, ".0123456789") != "" {
				return false
			}
			id := filepath.Join(label.Name(), f.Name())
			text, err := readText(filepath.Join(d.folder, id))
			if err != nil {
				c.leave("files that are no text were left out")
				continue
			}
			c.add(field{"id", filepath.ToSlash(id)}, field{"text", string(text)}, field{"label", label.Name()})
		}
		if len(inner) > 0 || len(files) == 0 {
			return false
		}
	}
	return true
}

// splitOf returns the kind of data that a word stands for: train, test or validation; empty: none.
func splitOf(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "train", "training", "trn":
		return "train"
	case "test", "testing", "tst", "eval", "evaluation", "holdout", "heldout":
		return "test"
	case "val", "valid", "validation", "dev":
		return "validation"
	}
	return ""
}
