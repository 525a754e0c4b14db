package doctor

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/racflow/racflow/engine/source"
)

// Set is rows that belong together: a knowledge, or the input.
type Set struct {
	Name string // as `knowledge "k"` or `the input`
	Path string
	Rows []Row
	// Invalid are the first rows that cannot be used, and Bad how many there are.
	Invalid []Place
	Bad     int
	// Columns are those of the file; Mapping says which are the id, the text and the label.
	Columns []string
	Mapping source.Mapping

	documents bool
	// By the last look: suspects, and of each row those that are nearly the same and have another label.
	suspected []suspect
	disputed  map[int][]int
}

// Row is a row of a set. Texts and ids are missing in a quick look.
type Row struct {
	ID, File, Text, Label string
	Line                  int
	Fields                []source.Field
	Entry                 string // the id of its entry in the knowledge, which its own may be
	// Reviewed says that a person has decided its label: an item with its text is answered by
	// that, and not scored.
	Reviewed bool

	key   uint64 // of the normalised text
	added bool   // it is a decision beside the rows of files
}

// Limits of a Set.
const (
	maxPlaces = 5   // rows that a finding shows
	maxText   = 200 // bytes of a text that it shows
)

// Read reads a set of rows; limit 0: all. A quick one has no texts. entries are the ids of those
// that other sources of the same knowledge have, and get those of these rows.
func Read(name, path string, r *source.Reader, m source.Mapping, limit int, quick bool, entries map[string]bool) (*Set, error) {
	s := &Set{Name: name, Path: path, Mapping: m}
	labels := map[string]string{} // a label is kept once
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
	return s, nil
}

// Join adds the rows of another source of the same knowledge.
func (s *Set) Join(other *Set) {
	s.Rows = append(s.Rows, other.Rows...)
	for _, name := range other.Columns {
		if !slices.Contains(s.Columns, name) {
			s.Columns = append(s.Columns, name)
		}
	}
	s.Refuse(other.Invalid...)
	s.Bad += other.Bad - len(other.Invalid)
}

// Decide adds rows that people have decided to those of the other sources.
func (s *Set) Decide(rows []Row) {
	for _, r := range rows {
		r.Reviewed, r.added, r.key = true, true, keyOf(r.Text)
		s.Rows = append(s.Rows, r)
	}
}

// Revise puts a row in the place of each one that f has one for, by the id of its entry; one
// without a text drops it.
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

// place shows a row.
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

// Normal is a text as it is compared: Unicode's composed form, in small letters, with one space
// for each piece of white space.
func Normal(text string) string {
	return strings.ToLower(norm.NFC.String(strings.Join(strings.Fields(text), " ")))
}

// keyOf hashes the normal form of a text (FNV-1a). Two of a million texts share a hash by chance
// once in 40 million times.
func keyOf(text string) uint64 {
	h := uint64(fnvOffset)
	space, begun := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			return keyOfBytes(Normal(text))
		case c == ' ' || '\t' <= c && c <= '\r':
			space = begun
			continue
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if space {
			h = (h ^ ' ') * fnvPrime
		}
		h = (h ^ uint64(c)) * fnvPrime
		space, begun = false, true
	}
	return h
}

func keyOfBytes(text string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Refuse notes what cannot be read.
func (s *Set) Refuse(all ...Place) {
	s.Bad += len(all)
	s.Invalid = append(s.Invalid, all[:min(maxPlaces, len(all))]...)
}

// Documents reports whether the set is documents instead of rows.
func (s *Set) Documents() bool { return s.documents }
