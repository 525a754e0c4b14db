package doctor

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
)

// Columns that a proposal adds. They are empty in unchanged rows.
const (
	ColumnAction = "doctor_action" // Relabel or Review
	ColumnLabel  = "doctor_label"  // the label before, or the one it may have instead
	ColumnWhy    = "doctor_why"
)

// Actions of a proposal on a row.
const (
	Relabel = "relabel" // the label was replaced
	Review  = "review"  // a person should look at the row
)

// Proposal is a corrected copy of a set's rows.
type Proposal struct {
	set  *Set
	rows []proposed

	Relabelled, Marked, Removed int // rows
}

type proposed struct {
	Row
	action, label, why string
}

// Propose corrects a checked set.
func Propose(s *Set) *Proposal {
	p := &Proposal{set: s}
	to := unified(spellings(s.counts()))
	suspected := map[int]suspect{}
	for _, found := range s.suspected {
		suspected[found.row] = found
	}
	removed, notes := s.removed(to)
	for i, row := range s.Rows {
		if row.added {
			continue // a decision stays in its own file
		}
		if removed[i] {
			p.Removed++
			continue
		}
		one := proposed{Row: row}
		one.why = notes[i]
		if label := s.respelt(row.Label, to); label != row.Label {
			one.action, one.Label, one.label = Relabel, label, row.Label
			one.because("another spelling is commoner")
		}
		found, ok := suspected[i]
		if label := s.respelt(found.Label, to); ok && label != one.Label {
			one.because("voters that have not seen it: " + found.why())
			if found.Relabel && len(s.disputed[i]) == 0 && !strings.Contains(one.why, contrary) {
				one.action, one.Label, one.label = Relabel, label, row.Label
			} else if one.action == "" {
				one.action, one.label = Review, label
			}
		}
		if one.action == "" && strings.Contains(one.why, contrary) {
			one.action = Review
		}
		switch one.action {
		case Relabel:
			p.Relabelled++
		case Review:
			p.Marked++
		}
		p.rows = append(p.rows, one)
	}
	return p
}

func (p *proposed) because(why string) {
	if p.why != "" {
		why = p.why + "; " + why
	}
	p.why = why
}

const contrary = "the same text has the label"

// contradicts says that the text of a row has another label in another row.
func (s *Set) contradicts(own, label string, other Row) string {
	return fmt.Sprintf("%s %q in %s:%d%s", contrary, label, other.File, other.Line, s.apart(", which differs in ", own, label))
}

// removed returns the copies of rows with the same text and label to remove, and notes about the
// rows that stay.
func (s *Set) removed(to map[string]string) (map[int]bool, map[int]string) {
	removed, notes := map[int]bool{}, map[int]string{}
	for _, group := range s.copies() {
		first, gone := map[string]int{}, map[string][]string{}
		var labels []string
		for _, i := range group {
			label := s.respelt(s.Rows[i].Label, to)
			if _, seen := first[label]; seen && s.Rows[i].added {
				continue
			} else if seen {
				removed[i] = true
				gone[label] = append(gone[label], fmt.Sprintf("%s:%d", s.Rows[i].File, s.Rows[i].Line))
				continue
			}
			first[label] = i
			labels = append(labels, label)
		}
		for _, label := range labels {
			var notesOf []string
			for _, other := range labels {
				if other != label {
					notesOf = append(notesOf, s.contradicts(label, other, s.Rows[first[other]]))
				}
			}
			if len(gone[label]) > 0 {
				notesOf = append(notesOf, "copies removed: "+strings.Join(gone[label], ", "))
			}
			notes[first[label]] = strings.Join(notesOf, "; ")
		}
	}
	return removed, notes
}

// Write writes the remaining rows, with the columns of their file and those of the proposal.
func (p *Proposal) Write(w io.Writer, format source.Format) error {
	id, text, label := p.names()
	columns := slices.DeleteFunc(slices.Clone(p.set.Columns), func(name string) bool {
		return slices.Contains([]string{ColumnAction, ColumnLabel, ColumnWhy}, name)
	})
	if !slices.Contains(columns, text) { // a path, or a position
		columns = append(columns, text)
	}
	if !slices.Contains(columns, label) {
		columns = append(columns, label)
	}
	columns = append(columns, ColumnAction, ColumnLabel, ColumnWhy)
	var write func([]any) error
	var flush func() error
	switch format {
	case source.TSV:
		write, flush = tsvWriter(w)
	case source.CSV:
		write, flush = csvWriter(w)
	case source.JSONL:
		write, flush = jsonWriter(w, columns)
	default:
		return fmt.Errorf("a proposal is written as tsv, csv or jsonl, not as %s: name the file so", format)
	}
	if format != source.JSONL {
		if err := write(anyOf(columns)); err != nil {
			return err
		}
	}
	for _, row := range p.rows {
		values := map[string]any{id: row.ID, text: row.Text, label: row.Label, ColumnAction: row.action, ColumnLabel: row.label, ColumnWhy: row.why}
		for _, field := range row.Fields {
			if _, own := values[field.Name]; !own {
				values[field.Name] = field.Value
			}
		}
		cells := make([]any, len(columns))
		for i, name := range columns {
			cells[i] = values[name]
		}
		if err := write(cells); err != nil {
			return fmt.Errorf("%s:%d: %w", row.File, row.Line, err)
		}
	}
	return flush()
}

// names returns the names of the columns for the id, the text and the label.
func (p *Proposal) names() (id, text, label string) {
	name := func(mapped, usual string) string {
		if slices.Contains(p.set.Columns, mapped) {
			return mapped
		}
		return usual
	}
	m := p.set.Mapping
	return name(m.ID, "id"), name(m.Text, "text"), name(m.Label, "label")
}

func anyOf(names []string) (all []any) {
	for _, name := range names {
		all = append(all, name)
	}
	return all
}

// cell returns a value as text.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	}
	return fmt.Sprint(v)
}

func tsvWriter(w io.Writer) (func([]any) error, func() error) {
	return func(values []any) error {
		line := make([]string, len(values))
		for i, v := range values {
			if line[i] = cell(v); strings.ContainsAny(line[i], "\t\r\n") {
				return fmt.Errorf("%.60q holds a tab or the end of a line, which TSV cannot: name a file that ends in .csv or .jsonl", line[i])
			}
		}
		_, err := io.WriteString(w, strings.Join(line, "\t")+"\n")
		return err
	}, func() error { return nil }
}

func csvWriter(w io.Writer) (func([]any) error, func() error) {
	out := csv.NewWriter(w)
	return func(values []any) error {
			line := make([]string, len(values))
			for i, v := range values {
				line[i] = cell(v)
			}
			return out.Write(line)
		}, func() error {
			out.Flush()
			return out.Error()
		}
}

func jsonWriter(w io.Writer, columns []string) (func([]any) error, func() error) {
	return func(values []any) error {
		var line bytes.Buffer
		for i, v := range values {
			if v == nil || v == "" {
				continue
			}
			name, err := json.Marshal(columns[i])
			if err != nil {
				return err
			}
			value, err := json.Marshal(v)
			if err != nil {
				return err
			}
			line.WriteByte(map[bool]byte{true: '{', false: ','}[line.Len() == 0])
			line.Write(name)
			line.WriteByte(':')
			line.Write(value)
		}
		line.WriteString("}\n")
		_, err := w.Write(line.Bytes())
		return err
	}, func() error { return nil }
}
