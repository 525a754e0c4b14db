package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/sdk"
)

// Data describes the data: rows or documents.
type Data struct {
	Rows      []*Rows
	Documents *Documents
}

// How says how to read data, instead of guessing.
type How struct {
	Form source.Form
	As   string // one of Forms; empty: guess it
}

// Look examines files of rows, and folders, globs and files of documents.
func Look(ctx context.Context, paths []string, how How) (Data, error) {
	var d Data
	for _, path := range paths {
		path = disk.Find(path)
		composed := norm.NFC.String(path)
		here, _ := os.Stat(path) // reading the rows reports the error
		if other, err := os.Stat(composed); err == nil && !os.SameFile(here, other) {
			return d, fmt.Errorf("%s and %s differ only in how accents are written, and a pipeline file can name only the second: rename the first", path, composed)
		}
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
	return d, ctx.Err()
}

// rowsAt examines a path with rows; false: the path holds documents.
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
	folder := err == nil && info.IsDir()
	if how.Form == (source.Form{}) {
		if r, err := rowsOfExport(path, glob, folder, how.As); r != nil || err != nil {
			return r, true, err
		}
	}
	r := &Rows{Path: path, Form: how.Form}
	switch {
	case folder:
		if r.Path, err = rowsIn(path); r.Path == "" {
			return nil, false, err
		}
	case source.Is(path), how.Form.Format != "":
	case glob || document.Is(path):
		return nil, false, nil
	}
	mustBe := source.Is(r.Path) || how.Form != (source.Form{})
	if err := r.ofSeveral(); err != nil {
		return nil, true, err
	}
	if err := r.sniff(mustBe); err != nil && mustBe {
		return nil, true, err
	} else if err != nil { // such as prose
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
	r.guess()
	return r, true, nil
}

// rowsOfExport reads the rows of another program's export. It returns nil if the path holds no export that it knows,
// and an error if as names a form that the path does not have.
func rowsOfExport(path string, glob, folder bool, as string) (*Rows, error) {
	if !glob {
		form, rows, err := exportIn(path, folder, as)
		if err != nil {
			return nil, err
		}
		if form != nil {
			r := &Rows{Path: path, From: form, converted: rows.rows.Bytes()}
			r.Seen, err = source.SniffStream("-", source.Form{Format: source.JSONL}, r.stream())
			r.Seen.Notes = append(r.Seen.Notes, rows.notes()...)
			if r.guess(); rows.unsure != "" {
				r.Unsure = path + ": " + rows.unsure
			}
			return r, err
		}
	}
	if glob || folder {
		if err := exportWithin(path); err != nil {
			return nil, err
		}
	}
	if as != "" {
		return nil, fmt.Errorf("%s has not the form %s%s", path, as, map[string]string{"rasa": ": it does not hold intents with examples, unlike an nlu.yml; domains and stories have none"}[as])
	}
	return nil, nil
}

// sniff examines the rows. With titled, the first row must name their columns.
func (r *Rows) sniff(titled bool) (err error) {
	r.Seen, err = source.Sniff(r.Path, r.Form)
	all, why := r.Seen.Rows+r.Seen.Invalid, ""
	if r.Seen.Invalid > 0 {
		why = ": " + r.Seen.First.Unusable(r.Seen.Invalid, all)
	}
	switch {
	case err != nil:
	case titled && r.untitled():
		err = fmt.Errorf("%s: the first row does not name the columns%s: if lines stand before the names of the columns, --header ROW says in which row these are", r.Path, why)
	case all == 0:
		err = fmt.Errorf("%s holds no usable row", r.Path)
	case r.Seen.Invalid > r.Seen.Rows:
		err = fmt.Errorf("%s%s", r.Path, why)
	}
	return err
}

// refuse returns advice for a file whose rows cannot be read, from its first bytes.
func refuse(path string) error {
	if source.Is(path) || document.Is(path) || document.IsWorkbook(path) {
		return nil // its reader reports errors
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	var head [512]byte
	n, _ := io.ReadFull(in, head[:]) // a file may be shorter
	err = rows.Refuse(head[:n])
	if err == nil || bytes.HasPrefix(head[:], []byte("PAR1")) {
		return nil
	}
	return fmt.Errorf("%s: %s", path, strings.ReplaceAll(err.Error(), "FILE", path))
}

// sentence reports whether a column's name looks like a text.
func sentence(c source.Column) bool { return len(strings.Fields(c.Name)) > 3 }

// headless reports whether the first line of a file, which should name its columns, looks like a row: it has a text, a
// number above numbers, or a label.
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
		return strings.HasPrefix(c.Name, fastTextMark) || sentence(c) && !c.Numeric && !named || c.Numeric && err == nil || 2*c.Distinct <= s.Rows && slices.Contains(c.Values, c.Name) && !named
	})
}

// untitled reports whether another row seems to name the columns. Either several columns with values lack a name (a
// single one may be the index of a data frame), or most rows have other fields than the header.
func (r *Rows) untitled() bool {
	n := 0
	for _, c := range r.Seen.Columns {
		if c.Unnamed && c.Distinct > 0 {
			n++
		}
	}
	otherwise := r.Seen.Invalid > r.Seen.Rows && errors.Is(r.Seen.First.Err, source.ErrFields)
	return r.Form.Header == nil && r.Form.HeaderRow == 0 && (n > 1 || n == 1 && !r.Seen.Columns[0].Unnamed || otherwise)
}

// rowsIn returns a glob of all files in a folder, if all of them hold rows and have the same suffix; empty: otherwise.
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
	if suffix == "" || len(dirs) > 0 {
		return "", nil
	}
	return filepath.Join(folder, "*."+suffix), nil
}

// maxTexts limits how many texts, and how many bytes of a document, are used to detect the language.
const maxTexts = 5000

// Rows is a file of rows, or a glob of such files.
type Rows struct {
	Path    string
	Form    source.Form // what the file must say about how rows are written, if it cannot be detected
	Seen    source.Seen
	Mapping source.Mapping // guessed, and perhaps corrected
	Second  string         // the second guess for the label; empty: none
	Named   bool           // a person has named the label column: each value is one label, whatever it looks like
	Unsure  string         // a guess that may well be wrong, with how to correct it; empty: none
	From    *export        // the export with the rows; nil: the file itself has them

	converted []byte // the rows of an export, as JSONL
	respelt   string // describes labels that are read in another spelling; empty: none

	// Read fills the following fields from all rows.
	Count, Invalid  int
	First           source.Row // the first invalid row
	Median, Longest int        // characters of a text
	Labels          []Label    // most frequent first
	Unlabelled      int        // rows without a label
	SameIDs         int        // rows whose id an earlier row has
	Language        string
}

// Label is a label with the number of rows that have it.
type Label struct {
	Name string
	Rows int
}

// listing matches a list or an object that JSON or Python has written as a text. A mere name or number in brackets may
// be a label.
var listing = regexp.MustCompile(`(?s)^\[\s*(["'{\[].*|-?\d[^\]]*[,\s].*)?\]$|^\(\s*["'].*\)$|^\{\s*(["'].*)?\}$`)

// maxLabels is the highest number of labels of a classification: a column with more values holds something else.
const maxLabels = 100_000

// Read reads all rows with the mapping.
func (r *Rows) Read() error {
	several := false
	r.Count, r.Invalid, r.Unlabelled, r.SameIDs = 0, 0, 0, 0
	labels, ids, lengths, texts := map[string]int{}, map[string]bool{}, []int{}, []string{}
	err := r.each(r.Form, func(row source.Row) {
		if row.Err != nil {
			if r.Invalid++; r.Invalid == 1 {
				r.First = row
			}
			several = several || errors.Is(row.Err, source.ErrSeveralLabels)
			return
		}
		r.Count++
		lengths = append(lengths, len([]rune(row.Text)))
		if len(texts) < maxTexts {
			texts = append(texts, row.Text)
		}
		if row.ID != "" && ids[row.ID] {
			r.SameIDs++
		}
		ids[row.ID] = true
		if row.Label == "" {
			r.Unlabelled++
		}
		for _, label := range r.Mapping.Labels.Split(row.Label) {
			labels[label]++
		}
	})
	if err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	if len(labels) > maxLabels {
		return fmt.Errorf("column %q has more than %d different values: it holds no labels; name another one with --column label=NAME, or none with --column label=", r.Mapping.Label, maxLabels)
	}
	r.Language = languageOf(texts)
	slices.Sort(lengths)
	if len(lengths) > 0 {
		r.Median, r.Longest = lengths[len(lengths)/2], lengths[len(lengths)-1]
	}
	r.Labels = nil
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		r.Labels = append(r.Labels, Label{name, labels[name]})
	}
	slices.SortStableFunc(r.Labels, func(a, b Label) int { return cmp.Compare(b.Rows, a.Rows) })
	column := r.Mapping.Label
	if slices.ContainsFunc(r.Seen.Columns, func(c source.Column) bool { return c.Name == column && c.Several && !r.Named }) {
		return fmt.Errorf("%s: rows have several labels, of which %q is the first, and they are no list of texts; --column %s takes the first of each row, --column label=NAME another column, --column label= none",
			r.Path, column, quoted("label="+column))
	}
	combined, separator, sure := r.combined()
	nested := slices.IndexFunc(r.Labels, func(l Label) bool {
		return listing.MatchString(l.Name) || strings.HasPrefix(combined, "[") && l.Name == combined
	})
	switch {
	case several:
		r.Seen.Notes = append(r.Seen.Notes, fmt.Sprintf("rows have several labels, and so do answers; --column %s takes the first of each row", quoted("label="+column+"[0]")))
		r.Mapping.Labels.Many = true
		return r.Read()
	case nested >= 0 && !r.Named && !r.Mapping.Labels.Many:
		return fmt.Errorf("%s: column %q holds %s as texts, such as %q: write them with ; between the labels, as a;b; --column label=%s takes each cell for one label, as it is",
			r.Path, column, map[bool]string{true: "objects", false: "lists"}[r.Labels[nested].Name[0] == '{'], r.Labels[nested].Name, quoted(column))
	case combined != "" && !r.Named && !r.Mapping.Labels.Many:
		if !sure {
			r.Unsure = fmt.Sprintf("%s: column %q may hold several labels in one cell, such as %q, or one: --column label=%s takes each cell for one, as it is", r.Path, column, combined, quoted(column))
		}
		r.Seen.Notes = append(r.Seen.Notes, fmt.Sprintf("column %q holds several labels in one cell, such as %q, and so do answers; --column label=%s takes each cell for one label, as it is", column, combined, quoted(column)))
		r.Mapping.Labels = source.Labels{LabelForm: sdk.LabelForm{Many: true}, Separator: separator}
		return r.Read()
	case r.levels() != "":
		r.Mapping.Labels.Levels = r.levels()
		r.Seen.Notes = append(r.Seen.Notes, fmt.Sprintf("labels are paths in a tree, such as %q: answers have a confidence for each level", r.Labels[0].Name))
	case r.Named && column != "" && r.Count > 0 && len(labels) == 0:
		return fmt.Errorf("%s: no row has a label in %q; name another column with --column label=NAME, or none with --column label=", r.Path, column)
	}
	return nil
}

// each calls f with each row, read in a form.
func (r *Rows) each(form source.Form, f func(source.Row)) error {
	path, from := r.Path, io.Reader(nil)
	if r.From != nil {
		path, form, from = "-", source.Form{Format: source.JSONL, Part: form.Part}, r.stream()
	}
	in, err := source.Open(path, form, r.Mapping, from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			if form.Part == r.Form.Part { // otherwise only a part was read
				r.respelt = in.Respelt()
			}
			return nil
		}
		if err != nil {
			return err
		}
		f(row)
	}
}

func (r *Rows) stream() io.Reader { return bytes.NewReader(r.converted) }

// combined returns a label that combines other labels, and its separator; empty: no label seems to. The parts also
// occur in other labels, which is rare for parts of mere names. sure is false if names such as ARTS & CULTURE and
// CULTURE & ARTS, or levels, could explain the labels.
func (r *Rows) combined() (label, separator string, sure bool) {
	for _, separator := range []string{"|", ";", ",", "+", "&", "/", " and "} {
		c := r.combinations(separator)
		known := c.n > 0 && c.single == c.members                             // each part is also a label
		if (separator == "/" || separator == " and ") && !c.moves && !known { // names contain these separators, too
			continue
		}
		if c.n > 1 || known {
			return c.example, separator, c.sure(separator)
		}
	}
	return "", "", false
}

// levels returns the separator between the levels of the labels; empty: they have none. Nearly all labels must contain
// the separator, first levels must repeat, and no first level may also be a later level.
func (r *Rows) levels() string {
	for _, separator := range []string{" >> ", " > ", ">", "::", " / ", "/"} {
		first, later, deep := map[string]bool{}, map[string]bool{}, 0
		for _, l := range r.Labels {
			parts := strings.Split(l.Name, separator)
			first[sdk.FoldLabel(parts[0])] = true
			for _, part := range parts[1:] {
				later[sdk.FoldLabel(part)] = true
			}
			if len(parts) > 1 && !slices.Contains(parts, "") {
				deep++
			}
		}
		mixed := slices.ContainsFunc(slices.Collect(maps.Keys(first)), func(part string) bool { return later[part] })
		if !mixed && len(first) > 1 && deep >= 2*len(first) && 10*deep >= 9*len(r.Labels) {
			return separator
		}
	}
	return ""
}

// spellings names labels that differ only in spelling, most frequent first.
func (r *Rows) spellings() (all []string) {
	first := map[string]string{}
	for _, l := range r.Labels {
		folded := sdk.FoldLabel(l.Name)
		if other, again := first[folded]; again {
			all = append(all, fmt.Sprintf("%q as %q", clean(l.Name), clean(other)))
			continue
		}
		first[folded] = l.Name
	}
	return all
}

// combinations counts the labels that consist of parts which also occur in other labels.
type combinations struct {
	example string
	n       int
	sets    int  // distinct sets, in any order of their parts
	members int  // distinct parts
	single  int  // parts that are also labels
	moves   bool // a part is first in one label and later in another
}

// sure reports whether the labels are certainly sets with this separator, which names cannot explain.
func (c combinations) sure(separator string) bool {
	switch separator {
	case "|", ";":
		return c.sets > 1 && (c.moves || c.single > 0)
	case ",":
		return c.sets > 1 && 2*c.single > c.members || c.sets > 2 && c.moves
	}
	return false
}

// combinations finds combinations by the separator between the parts.
func (r *Rows) combinations(separator string) combinations {
	parts := func(label string) (all []string) {
		for part := range strings.SplitSeq(strings.ToLower(label), separator) {
			all = append(all, strings.Trim(part, " \t[]'\""))
		}
		return all
	}
	in, alone := map[string]int{}, map[string]bool{}
	for _, l := range r.Labels {
		all := parts(l.Name)
		for _, part := range all {
			in[part]++
		}
		alone[all[0]] = alone[all[0]] || len(all) == 1
	}
	var c combinations
	sets, first := map[string]bool{}, map[string]bool{} // first: whether a part was first in its latest label
	for _, l := range r.Labels {
		all := parts(l.Name)
		if len(all) == 1 || slices.ContainsFunc(all, func(part string) bool { return part == "" || in[part] < 2 }) {
			continue
		}
		c.n++
		c.example = cmp.Or(c.example, l.Name)
		for i, part := range all {
			before, seen := first[part]
			c.moves = c.moves || seen && before != (i == 0)
			if first[part] = i == 0; !seen && alone[part] {
				c.single++
			}
		}
		slices.Sort(all)
		sets[strings.Join(all, separator)] = true
	}
	c.sets, c.members = len(sets), len(first)
	return c
}

// labelled reports whether a pipeline can learn from the rows. They need at least two labels. The labels must repeat,
// or a person must have named the label column.
func (r *Rows) labelled() bool {
	return len(r.Labels) > 1 && (r.Named || 2*len(r.Labels) <= r.Count-r.Unlabelled)
}

// heldOut returns the share of the rows that the knowledge omits, to test the pipeline on; 0: there are too few rows.
func (r *Rows) heldOut() (float64, error) {
	share := .1
	if r.Count < 500 {
		share = .2
	}
	form, kept := r.Form, 0
	form.Part = [2]float64{0, 1 - share}
	err := r.each(form, func(row source.Row) {
		if row.Err == nil {
			kept++
		}
	})
	if err != nil || kept < 2 || kept == r.Count {
		return 0, err
	}
	return share, nil
}
