package scaffold

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/language"
	"github.com/racflow/racflow/engine/source"
)

// Rows is a file of rows, or a glob of such files.
type Rows struct {
	Path    string
	Form    source.Form // what a file has to say of how the rows are written, beyond what is found out
	Seen    source.Seen
	Mapping source.Mapping // guessed, and perhaps corrected
	Second  source.Mapping // what else may hold the text and the label; empty: nothing
	Named   bool           // a person has named the column of labels
	Unsure  []string       // what is guessed and may well be wrong, each with how to say it
	From    *export        // the rows are those of an export; nil: of the file itself
	AsIs    bool           // what the column of labels holds is one label each, whatever it looks like
	Other   bool           // the rows before these are of the same file

	converted []byte // of an export, as JSONL

	// What Read finds in all rows.
	Count, Invalid  int
	Median, Longest int     // characters of a text
	Labels          []Label // the commonest first
	Unlabelled      int     // rows without one
	Duplicates      int     // rows whose text another has, but for case and white space
	Contradicting   int     // texts that have several labels
	SameIDs         int     // rows whose id another has
	Languages       []language.Share
	texts           map[[16]byte]bool // hashes of the texts
}

// Label is a label with the number of rows that have it.
type Label struct {
	Name string
	Rows int
}

// maxLabels is how many labels a classification may have here: with more, the column
// holds something else.
const maxLabels = 100_000

// Read reads all rows by the mapping.
func (r *Rows) Read() error {
	in, err := r.open(r.Form, r.Mapping)
	if err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	several, first := 0, error(nil)
	r.Count, r.Invalid, r.Unlabelled, r.Duplicates, r.Contradicting, r.SameIDs = 0, 0, 0, 0, 0, 0
	labels, ids, lengths := map[string]int{}, map[[16]byte]bool{}, []int{}
	of := map[[16]byte]string{} // the label of a text
	contradicted := map[[16]byte]bool{}
	var texts sample
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the rows: %w", err)
		}
		if row.Err != nil {
			if r.Invalid++; errors.Is(row.Err, source.ErrSeveralLabels) {
				several++
				first = cmp.Or(first, fmt.Errorf("line %d: %w", row.Line, row.Err))
			}
			continue
		}
		r.Count++
		lengths = append(lengths, len([]rune(row.Text)))
		texts.add(row.Text)
		key := hashed(row.Text)
		if before, again := of[key]; again {
			r.Duplicates++
			if before != row.Label {
				contradicted[key] = true
			}
		}
		of[key] = row.Label
		if row.ID != "" {
			if id := hashed(row.ID); ids[id] {
				r.SameIDs++
			} else {
				ids[id] = true
			}
		}
		if row.Label == "" {
			r.Unlabelled++
		} else if labels[row.Label]++; len(labels) > maxLabels {
			return fmt.Errorf("column %q has more than %d different values: it holds no labels; name another one with --column label=NAME, or none with --column label=", r.Mapping.Label, maxLabels)
		}
	}
	r.texts = make(map[[16]byte]bool, len(of))
	for key := range of {
		r.texts[key] = true
	}
	r.Contradicting, r.Languages = len(contradicted), texts.languages()
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
	if slices.ContainsFunc(r.Seen.Columns, func(c source.Column) bool { return c.Name == column && c.Several && !r.AsIs }) {
		several, first = r.Count, fmt.Errorf("%q is the first of them", column) // such as labels[0].name
	} else if several > 0 {
		column = whole(column) + "[0]"
	}
	switch combined := r.combined(); {
	case several > 0:
		return fmt.Errorf("%s: %s several labels (%v), and a pipeline answers with one; --column %s takes the first of each row, --column label=NAME another column, --column label= none",
			r.Path, have(several, "row"), first, quoted("label="+column))
	case combined != "" && !r.AsIs:
		return fmt.Errorf("%s: column %q holds several labels in one cell, such as %q, and a pipeline answers with one: write one, or name another column with --column label=NAME; --column label=%s takes each cell for one label, as it is",
			r.Path, column, combined, quoted(column))
	case r.Named && column != "" && r.Count > 0 && len(labels) == 0:
		return fmt.Errorf("%s: no row has a label in %q; name another column with --column label=NAME, or none with --column label=", r.Path, column)
	}
	return nil
}

// open opens the rows.
func (r *Rows) open(form source.Form, m source.Mapping) (*source.Reader, error) {
	if r.From != nil {
		return source.Open("-", source.Form{Format: source.JSONL, Part: form.Part}, m, r.stream())
	}
	return source.Open(r.Path, form, m, nil)
}

func (r *Rows) stream() io.Reader { return bytes.NewReader(r.converted) }

// combined is a label that is made of others; empty: none looks so. Its parts stand in other labels, too,
// which parts of names hardly do.
func (r *Rows) combined() string {
	for _, separator := range []string{"|", ";", ",", "+", "&"} {
		in, example, n := map[string]int{}, "", 0
		parts := func(label string) (all []string) {
			for part := range strings.SplitSeq(label, separator) {
				all = append(all, strings.ToLower(strings.Trim(part, " \t[]'\"")))
			}
			return all
		}
		for _, l := range r.Labels {
			for _, part := range parts(l.Name) {
				in[part]++
			}
		}
		for _, l := range r.Labels {
			if all := parts(l.Name); len(all) > 1 && !slices.ContainsFunc(all, func(part string) bool { return in[part] < 2 }) {
				n++
				example = cmp.Or(example, l.Name)
			}
		}
		if n > 1 {
			return example
		}
	}
	return ""
}

// Labelled reports whether the rows can be learned from: they have two labels at least, and
// these come again, unless a person has named their column.
func (r *Rows) Labelled() bool {
	return len(r.Labels) > 1 && (r.Named || 2*len(r.Labels) <= r.Count-r.Unlabelled)
}

// shared is how many texts of these rows others have, too.
func (r *Rows) shared(other *Rows) int {
	n := 0
	for key := range r.texts {
		if other.texts[key] {
			n++
		}
	}
	return n
}

// heldOut is the share of the rows to try the pipeline on that the knowledge does not get;
// 0: there are too few.
func (r *Rows) heldOut() (float64, error) {
	shares := []float64{.1, .2, .3}
	if r.Count < 500 {
		shares = shares[1:]
	}
	for _, share := range shares {
		kept, err := r.count([2]float64{0, 1 - share})
		if err != nil {
			return 0, err
		}
		if kept > 1 && r.Count-kept > 0 {
			return share, nil
		}
	}
	return 0, nil
}

// count is how many rows a part of them has.
func (r *Rows) count(part [2]float64) (n int, err error) {
	form := r.Form
	form.Part = part
	in, err := r.open(form, r.Mapping)
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		if row.Err == nil {
			n++
		}
	}
}

// hashed is a text but for case and white space.
func hashed(text string) [16]byte {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Join(strings.Fields(text), " "))))
	return [16]byte(sum[:16])
}
