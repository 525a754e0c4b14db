package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
)

// Options say what to check.
type Options struct {
	Knowledge []Source
	Input     *Set // nil: none
	Quick     bool // only certain findings; takes hardly longer than reading
}

// Source is a knowledge with access to its stages.
type Source struct {
	*Set
	// Votes returns votes on labelled rows by voters that have not seen them; nil: no voters are
	// asked. Voters are not asked about sets of labels.
	Votes func(context.Context) ([]VotedRow, error)
	// Embed returns the vectors of texts; nil: no embedder is asked.
	Embed func(context.Context, []string) ([][]float32, error)
}

// Look checks rows. Report.Skipped lists the checks that a stage could not do, with the reason.
func Look(ctx context.Context, o Options) (Report, error) {
	r := Report{}
	all := map[string]int{} // labels
	for _, k := range o.Knowledge {
		r.Rows += len(k.Rows) - k.held
		labels := k.counts(false)
		for label, n := range labels {
			for _, node := range k.Form().Path(label) {
				all[node] += n
			}
		}
		for _, label := range k.Described {
			all[label]++
		}
		if err := k.examine(ctx, o, labels, &r); err != nil {
			return r, err
		}
	}
	if o.Input != nil {
		r.Items = len(o.Input.Rows)
		if f, found := unknown(o.Input, all); found {
			r.add(f)
		}
		if !o.Quick {
			if slices.ContainsFunc(o.Knowledge, func(k Source) bool { return k.Path == o.Input.Path }) {
				o.Input.Respelt = nil // reported for the knowledge already
			}
			o.Input.texts(&r)
		}
	}
	r.sort()
	if o.Quick {
		r.certain()
	}
	return r, ctx.Err()
}

// certain keeps only errors, at most maxQuick, without their rows.
func (r *Report) certain() {
	var kept []Finding
	for _, f := range r.Findings {
		if f.Severity == Error && len(kept) < maxQuick {
			f.Rows = nil
			kept = append(kept, f)
		}
	}
	r.Findings = kept
}

// maxQuick limits the findings of a quick look.
const maxQuick = 3

func (k Source) examine(ctx context.Context, o Options, labels map[string]int, r *Report) error {
	swapped, is := k.swapped(labels)
	if is {
		r.add(swapped)
		return nil // all other findings would follow from this one
	}
	k.spelling(o.Input, r)
	for _, f := range k.copied(k.copies()) {
		r.add(f)
	}
	if o.Input != nil && !k.documents {
		if f, found := known(o.Input, k.Set); found {
			r.add(f)
		}
	}
	if o.Quick {
		return nil
	}
	if f, found := k.few(labels); found {
		r.add(f)
	}
	k.texts(r)
	input := o.Input
	if k.documents {
		input = nil
	}
	found, err := alike(ctx, k.Set, input)
	if err != nil {
		return err
	}
	for _, f := range found {
		r.add(f)
	}
	if k.Embed != nil {
		k.cut(ctx, r)
	}
	if k.Votes != nil && len(labels) > 1 && !k.Form().Many {
		k.suspects(ctx, r)
	}
	return nil
}

// texts finds unusable rows, and labels that are read differently than they are written.
func (s *Set) texts(r *Report) {
	for _, note := range s.Respelt {
		r.add(Finding{Check: "written", Severity: Info, Count: 1, Message: s.Name + ": " + note, Advice: "nothing has to be done; --fix writes them as they are read"})
	}
	if s.Bad > 0 {
		r.add(Finding{
			Check: "invalid", Severity: Warning, Count: s.Bad, Rows: s.Invalid,
			Message: fmt.Sprintf("%s: %s", s.Name, many(s.Bad, s.unit()+" cannot be used", s.unit()+"s cannot be used")),
			Advice:  "correct or remove them: they are left out",
		})
	}
}

// Severity says how bad a finding is.
type Severity string

// Severities.
const (
	Error   Severity = "error"   // it makes answers or figures wrong
	Warning Severity = "warning" // it probably does
	Info    Severity = "info"    // it may be intended
)

var severities = []Severity{Error, Warning, Info}

// Place is a row that a finding refers to.
type Place struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"` // 0: a document
	Text     string `json:"text"`           // its beginning
	Label    string `json:"label,omitempty"`
	Proposal string `json:"proposal,omitempty"` // another label that may be right
	Note     string `json:"note,omitempty"`     // how it relates to the finding
	Entry    string `json:"entry,omitempty"`    // for a row of a knowledge: the id of its entry
}

// Finding is the result of one check.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // a sentence with counts
	Advice   string   `json:"advice"`  // what to do
	Count    int      `json:"count"`   // rows, or labels
	// Expected is the share of rows whose label is expected to be wrong, by voters; 0: they were
	// not asked.
	Expected float64 `json:"expected,omitempty"`
	Rows     []Place `json:"rows,omitempty"`
}

// Report is the result of Look.
type Report struct {
	Findings []Finding `json:"findings"` // the most severe first
	Rows     int       `json:"rows"`     // rows of knowledge, or documents
	Items    int       `json:"items"`    // of the input
	Voted    int       `json:"voted"`    // rows of the knowledge whose labels voters were asked about
	Skipped  []string  `json:"skipped,omitempty"`
}

// Serious reports whether a finding is an Error.
func (r Report) Serious() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// sort puts the most severe findings first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)), cmp.Compare(b.Count, a.Count))
	})
}

// many formats a count with its noun.
func many(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// Set is the rows of a knowledge, or of the input.
type Set struct {
	Name string // as `knowledge "k"` or `the input`
	Path string
	Rows []Row
	// Invalid has the first unusable rows, and Bad counts all of them.
	Invalid []Place
	Bad     int
	// Columns are the file's columns; Mapping says which have the id, the text and the label.
	Columns []string
	Mapping source.Mapping

	// Renames is the table of labels. It renames labels, and describes labels, which then need no
	// row.
	Renames   source.Renames
	Described []string
	// Respelt has notes on labels that are read differently than they are written; empty: there are
	// none.
	Respelt []string

	held, unusable int // numbers of rows: in Rows, and in the files

	documents bool
	// From the last look: suspects and, by row, near copies with another label.
	suspected []suspect
	disputed  map[int][]int
}

// Row is a row of a set. A quick look has no texts and ids.
type Row struct {
	ID, File, Text, Label string
	Line                  int
	Fields                []result.Field
	Entry                 string // id of its entry in the knowledge, which may equal ID
	// Reviewed means that a person decided the row's label. The decision also answers items with
	// the same text; such items are not scored.
	Reviewed bool
	// Held means that the row is in the file but not in the knowledge, for example because it is held out.
	Held bool

	key   uint64 // of the normalised text
	added bool   // it is a decision, not a row of a file
}

// Limits of a Set.
const (
	maxPlaces = 5   // rows that a finding shows
	maxText   = 200 // bytes that it shows of a text
)

// Read reads a set of rows; limit 0: all. A quick set has no texts. entries has the entry ids of
// other sources of the same knowledge; Read adds its own.
func Read(name, path string, r *source.Reader, m source.Mapping, limit int, quick bool, entries map[string]bool) (*Set, error) {
	s := &Set{Name: name, Path: path, Mapping: m}
	labels := map[string]string{} // shares one copy of each label
	for n := 0; limit == 0 || n < limit; n++ {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		file, line := row.Place()
		if file == "" {
			file = path
		}
		if row.Err != nil {
			s.unusable++
			if s.Bad++; len(s.Invalid) < maxPlaces {
				s.Invalid = append(s.Invalid, Place{File: file, Line: line, Text: short(row.Text), Note: row.Err.Error()})
			}
			continue
		}
		label, known := labels[row.Label]
		if !known {
			label = strings.Clone(row.Label)
			labels[label] = label
		}
		one := Row{File: file, Line: line, Label: label, key: keyOf(row.Text)}
		if !quick {
			one.ID, one.Text, one.Fields = row.ID, row.Text, row.Fields
			one.Entry = source.EntryID(row, row.Hash(), entries)
			entries[one.Entry] = true
		}
		s.Rows = append(s.Rows, one)
	}
	s.Columns = r.Columns()
	if note := r.Respelt(); note != "" {
		s.Respelt = []string{path + ": " + note}
	}
	return s, nil
}

// Hold adds the rows that only all has, the complete rows of the source's files. The set then has
// the order of all.
func (s *Set) Hold(all *Set) {
	own := make(map[Place]Row, len(s.Rows))
	for _, r := range s.Rows {
		own[Place{File: r.File, Line: r.Line}] = r
	}
	s.held, s.Rows, s.Respelt, s.unusable = len(all.Rows)-len(s.Rows), all.Rows, all.Respelt, all.unusable
	for i, r := range s.Rows {
		known, ok := own[Place{File: r.File, Line: r.Line}]
		if s.Rows[i] = known; !ok {
			r.Held, r.Entry = true, ""
			s.Rows[i] = r
		}
	}
}

// Join adds the rows of another source of the same knowledge.
func (s *Set) Join(other *Set) {
	s.Rows = append(s.Rows, other.Rows...)
	for _, name := range other.Columns {
		if !slices.Contains(s.Columns, name) {
			s.Columns = append(s.Columns, name)
		}
	}
	s.Respelt, s.held, s.unusable = append(s.Respelt, other.Respelt...), s.held+other.held, s.unusable+other.unusable
	s.Refuse(other.Invalid...)
	s.Bad += other.Bad - len(other.Invalid)
}

// Decide adds rows that people decided.
func (s *Set) Decide(rows []Row) {
	for _, r := range rows {
		r.Reviewed, r.added, r.key = true, true, keyOf(r.Text)
		s.Rows = append(s.Rows, r)
	}
}

// Revise replaces each row for which f returns another row, by entry id. A returned row without a
// text deletes the row.
func (s *Set) Revise(f func(entry string) (r Row, ok bool)) {
	kept := s.Rows[:0]
	for _, old := range s.Rows {
		r, ok := f(old.Entry)
		switch {
		case !ok:
			kept = append(kept, old)
		case r.Text != "":
			old.Text, old.Label, old.Reviewed, old.key = r.Text, r.Label, true, keyOf(r.Text)
			kept = append(kept, old)
		}
	}
	s.Rows = kept
}

// OfDocuments makes a set of documents.
func OfDocuments(name, path string, all iter.Seq2[string, string]) *Set {
	s := &Set{Name: name, Path: path, documents: true}
	for file, text := range all {
		s.Rows = append(s.Rows, Row{File: file, Text: text, key: keyOf(text)})
	}
	return s
}

// place makes a Place of a row.
func (r Row) place(note string) Place {
	return Place{File: r.File, Line: r.Line, Text: short(r.Text), Label: r.Label, Note: note, Entry: r.Entry}
}

func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// keyOf hashes the normal form of a text (FNV-1a). Among a million texts, the chance that any two
// share a hash is 1 in 40 million.
func keyOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, source.Normal(text)) // never fails
	return h.Sum64()
}

// Refuse records rows that cannot be read.
func (s *Set) Refuse(all ...Place) {
	s.Bad += len(all)
	s.Invalid = append(s.Invalid, all[:min(maxPlaces, len(all))]...)
}

// Documents reports whether the set holds documents instead of rows.
func (s *Set) Documents() bool { return s.documents }
