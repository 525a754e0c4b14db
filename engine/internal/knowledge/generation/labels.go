package generation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// This file reads the table of a knowledge's labels.
//
// The table's content becomes rows: an example is a row with its label, and so is a description. So the
// embedder, the store and the learning voters need not know of descriptions. A description is recognised by
// its id: voters are not asked about it, neither to measure nor to calibrate votes.
//
// The labels of all rows, including people's decisions, are renamed before anything else sees them. A row
// keeps its own id, or the id made from its content.

// described is a line of a table of labels.
type described struct {
	sdk.Described
	label    string
	becomes  string // empty: the label stays
	examples []string
	meta     sdk.Meta // the other columns
	at       InvalidRow
}

// Table is the table of a knowledge's labels. A nil table has no lines.
type Table struct {
	Renames source.Renames
	Invalid []InvalidRow // rejected lines

	form   sdk.LabelForm
	digest string
	lines  []described
	met    map[string]bool // labels of rows so far, before and after renaming
}

// ReadTable reads the table of a knowledge; nil: it has none.
func ReadTable(block *pipeline.Knowledge) (*Table, error) {
	s := block.Described()
	if s == nil {
		return nil, nil
	}
	t := &Table{form: block.LabelForm(), Renames: source.Renames{}, met: map[string]bool{}}
	var err error
	if t.digest, err = source.Digest(s.Path); err != nil { // before reading, as for decisions
		return nil, &SourceError{s.Range, err}
	}
	r, err := source.Open(s.Path, s.Form, source.Mapping{Text: s.Text, Meta: []string{}, Fields: true}, nil)
	if err != nil {
		return nil, &SourceError{s.Range, noLabels(s, err)}
	}
	defer r.Close() //nolint:errcheck // it was only read
	first := map[string]int{}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &SourceError{s.Range, named(s.Path, err)}
		}
		file, line := row.Place()
		d := describedOf(row, s.Describes)
		d.at = InvalidRow{Path: cmp.Or(file, s.Path), Line: line}
		switch before := first[d.label]; {
		case d.label == "":
			d.at.Err = errors.New("it has no label")
		case row.Err != nil:
			d.at.Err = row.Err
		case before > 0:
			d.at.Err = fmt.Errorf("line %d describes the label %q already: write one line for each label", before, d.label)
		default:
			first[d.label] = line
			t.lines = append(t.lines, d)
			continue
		}
		t.Invalid = append(t.Invalid, d.at)
	}
	t.rename()
	return t, nil
}

// noLabels explains why a table cannot be read, if no column has the labels.
func noLabels(s *pipeline.Source, err error) error {
	seen, failed := source.Sniff(s.Path, s.Form)
	if failed != nil || len(seen.Columns) == 0 {
		return named(s.Path, err)
	}
	var names []string
	for _, c := range seen.Columns {
		names = append(names, fmt.Sprintf("%q", c.Name))
		if c.Name == s.Text {
			return named(s.Path, err)
		}
	}
	return fmt.Errorf(`%s: there is no column %q; the columns are %s. Name the one that has the labels: label = "NAME"`, s.Path, s.Text, strings.Join(names, ", "))
}

// describedOf reads a line. Columns without a meaning of their own become metadata of the description.
func describedOf(row source.Row, columns *pipeline.DescribedColumns) (d described) {
	d.label = sdk.LabelForm{}.Canonical(row.Text)
	for _, f := range row.Fields {
		switch texts := textsOf(f.Value); {
		case len(texts) == 0:
		case f.Name == columns.Name:
			d.Name = texts[0]
		case f.Name == columns.Description:
			d.Text = strings.Join(texts, " | ")
		case f.Name == columns.Examples:
			d.examples = texts
		case f.Name == columns.Becomes:
			d.becomes = sdk.LabelForm{}.Canonical(texts[0])
		default:
			if d.meta == nil {
				d.meta = sdk.Meta{}
			}
			d.meta[f.Name] = strings.Join(texts, " | ")
		}
	}
	return d
}

// textsOf returns the texts of a value: the elements of a JSON list, or the texts between bars.
func textsOf(value any) (texts []string) {
	switch v := value.(type) {
	case nil:
	case json.RawMessage:
		var list []any
		if json.Unmarshal(v, &list) != nil {
			list = []any{string(v)}
		}
		for _, one := range list {
			texts = append(texts, fmt.Sprint(one))
		}
	default:
		texts = strings.Split(fmt.Sprint(v), " | ")
	}
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// rename collects the renamed labels. It refuses a line whose new label is renamed, too: the result would
// depend on the order.
func (t *Table) rename() {
	for _, d := range t.lines {
		if d.becomes != "" {
			t.Renames[d.label] = d.becomes
		}
	}
	kept := source.Renames{}
	t.lines = slices.DeleteFunc(t.lines, func(d described) bool {
		next := t.Renames[d.becomes]
		switch {
		case d.becomes == "":
			return false
		case d.becomes == d.label:
			d.at.Err = errors.New("its label becomes itself: leave becomes empty")
		case next == d.label:
			d.at.Err = fmt.Errorf("%q and %q become each other: say it of one of them", d.label, d.becomes)
		case next != "":
			d.at.Err = fmt.Errorf("its label becomes %q, which becomes %q itself: write %q here, too", d.becomes, next, next)
		case d.Text != "" || d.Name != "":
			d.at.Err = fmt.Errorf("its label becomes %q: name and describe that label, on a line of its own", d.becomes)
		default:
			kept[d.label] = d.becomes
			return false
		}
		t.Invalid = append(t.Invalid, d.at)
		return true
	})
	t.Renames = kept
}

// take renames the label of a row.
func (t *Table) take(u *Unit) {
	if t == nil {
		return
	}
	for _, label := range t.form.Split(u.Label) {
		t.met[label], t.met[t.Renames.Of(label)] = true, true
	}
	if to := t.Renames.In(t.form, u.Label); to != u.Label {
		u.Label = to
		u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta, Context: u.Context}.Hash()
	}
}

// rest calls f with the rows that the table adds to the rows of the sources. It calls reject with the lines
// that apply to no row.
func (t *Table) rest(places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) error {
	if t == nil {
		return nil
	}
	for _, at := range t.Invalid {
		reject(at)
	}
	add := func(u Unit, at InvalidRow) error {
		u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta}.Hash()
		u.ID = source.EntryID(source.Row{ID: u.ID}, u.Hash, places)
		if first, ok := places[u.ID]; ok {
			at.Err = repeated(u.ID, first, at)
			reject(at)
			return nil
		}
		places[u.ID] = at
		return f(u)
	}
	for _, d := range t.lines {
		label := t.Renames.Of(d.label)
		if d.Text == "" && len(d.examples) == 0 && !t.met[d.label] {
			d.at.Err = t.unknown(d.label)
			reject(d.at)
			continue
		}
		for _, text := range d.examples {
			t.met[label] = true
			if err := add(Unit{Text: text, Label: label}, d.at); err != nil {
				return err
			}
		}
		if d.Text != "" {
			if err := add(Unit{ID: descriptionID(label), Text: d.Text, Label: label, Meta: d.meta}, d.at); err != nil {
				return err
			}
		}
	}
	return nil
}

// Labels returns the labels that a line describes, gives an example of, or creates by renaming.
func (t *Table) Labels() (labels []string) {
	for _, d := range t.lines {
		if d.Text != "" || d.becomes != "" || len(d.examples) > 0 {
			labels = append(labels, cmp.Or(d.becomes, d.label))
		}
	}
	return labels
}

// unknown returns the error of a line about a label that no row has.
func (t *Table) unknown(label string) error {
	var known []string
	for _, l := range t.lines {
		if l.label != label && (t.met[l.label] || l.Text != "") {
			known = append(known, l.label)
		}
	}
	for met := range t.met {
		known = append(known, met)
	}
	slices.Sort(known)
	return fmt.Errorf("no row has the label %q, and the line neither describes it nor has an example: correct the label, or remove the line.%s", label, rule.DidYouMean(label, slices.Compact(known)))
}

// Described returns the descriptions of the remaining labels, by label. It is complete once the rows of the
// sources were taken.
func (t *Table) described() map[string]sdk.Described {
	if t == nil {
		return nil
	}
	all := map[string]sdk.Described{}
	for _, d := range t.lines {
		if d.becomes == "" && (d.Text != "" || d.Name != "") {
			d.Alone = !t.met[d.label]
			all[d.label] = d.Described
		}
	}
	return all
}

// descriptionID returns the id of the row with the description of a label.
func descriptionID(label string) string { return "description of " + label }

// IsDescription reports whether a row is the description of its label.
func IsDescription(e sdk.Entry, all map[string]sdk.Described) bool {
	return all[e.Label].Text != "" && e.ID == descriptionID(e.Label)
}
