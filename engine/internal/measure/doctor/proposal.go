package doctor

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Columns that a proposal adds. They are empty in unchanged rows.
const (
	columnAction = "doctor_action" // Relabel or Review
	columnLabel  = "doctor_label"  // the former label, or other labels that may be right
	columnWhy    = "doctor_why"
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
	LeftOut                     int // rows of the files that cannot be used
}

type proposed struct {
	Row
	action, label, why string
}

// Propose returns a corrected copy of the rows of a checked set.
func Propose(s *Set) *Proposal {
	p := &Proposal{set: s, LeftOut: s.unusable}
	doubts := map[int]Doubt{}
	for _, d := range Doubts(s) {
		doubts[d.Row] = d
	}
	for i, row := range s.Rows {
		d, doubted := doubts[i]
		switch one := (proposed{Row: row, why: strings.Join(d.Why, "; ")}); {
		case row.added: // a decision stays in its own file
		case d.Copy:
			p.Removed++
		case d.Relabel != "":
			p.Relabelled++
			one.action, one.Label, one.label = Relabel, d.Relabel, row.Label
			p.rows = append(p.rows, one)
		default:
			if doubted {
				p.Marked++
				one.action, one.label = Review, sdk.JoinLabels(d.Labels)
			}
			p.rows = append(p.rows, one)
		}
	}
	return p
}

// Write writes the remaining rows, with the columns of their file and the columns of the proposal.
func (p *Proposal) Write(w io.Writer, format source.Format) error {
	id, text, label := p.names()
	columns := slices.DeleteFunc(slices.Clone(p.set.Columns), func(name string) bool {
		return slices.Contains([]string{columnAction, columnLabel, columnWhy}, name)
	})
	if !slices.Contains(columns, text) { // a path, or a position
		columns = append(columns, text)
	}
	if !slices.Contains(columns, label) {
		columns = append(columns, label)
	}
	columns = append(columns, columnAction, columnLabel, columnWhy)
	if !slices.Contains([]source.Format{source.TSV, source.CSV, source.JSONL}, format) {
		return fmt.Errorf("a proposal is written as tsv, csv or jsonl, not as %s: name the file so", format)
	}
	out := csv.NewWriter(w)
	write := func(cells []any) error {
		if format == source.JSONL {
			return writeObject(w, columns, cells)
		}
		texts := make([]string, len(cells))
		for i, v := range cells {
			texts[i] = cell(v)
		}
		if format == source.CSV {
			return out.Write(texts)
		}
		return writeTSV(w, texts)
	}
	if format != source.JSONL {
		if err := write(anyOf(columns)); err != nil {
			return err
		}
	}
	for _, row := range p.rows {
		values := map[string]any{id: row.ID, text: row.Text, label: row.Label, columnAction: row.action, columnLabel: row.label, columnWhy: row.why}
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
	out.Flush()
	return out.Error()
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

func writeTSV(w io.Writer, cells []string) error {
	for _, text := range cells {
		if strings.ContainsAny(text, "\t\r\n") {
			return fmt.Errorf("%.60q holds a tab or the end of a line, which TSV cannot: name a file that ends in .csv or .jsonl", text)
		}
	}
	_, err := io.WriteString(w, strings.Join(cells, "\t")+"\n")
	return err
}

// writeObject writes the cells that have a value as a JSON object, in the order of the columns.
func writeObject(w io.Writer, columns []string, cells []any) error {
	var members []string
	for i, v := range cells {
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
		members = append(members, string(name)+":"+string(value))
	}
	_, err := io.WriteString(w, "{"+strings.Join(members, ",")+"}\n")
	return err
}
