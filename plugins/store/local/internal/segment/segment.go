package segment

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/sdk"
)

// Segment is some rows with every index over them: an image, mapped from a file or
// made in memory, and views of its sections. It never changes. Strings and slices
// taken from it are valid as long as it is reachable: to keep one longer, copy it;
// to work on them, keep the segment alive.
type Segment struct {
	*image.Image

	Records       []record
	Heap          string
	ids           HashTable
	Labels        texts
	Vectors       []float32
	Codes         []int8
	Quantisations []Quantisation
	Lengths       []float32 // words of a row
	Terms         Terms
	Values        Lists
}

// record is the part of a row that has a fixed size. Its strings follow one another
// in the heap: id, hash, context, text, meta.
type record struct {
	Sequence, Start               uint64
	id, hash, context, text, meta uint32 // lengths
	Label                         uint32
}

// Path is the file of the segment with a name.
func Path(dir string, name uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", name, Suffix))
}

// Suffix ends the names of files of segments.
const Suffix = ".segment"

// Open maps the file of a segment.
func Open(path string) (*Segment, error) {
	b, unmap, err := image.Map(path)
	if err != nil {
		return nil, err
	}
	s, err := New(b, path)
	if err == nil {
		err = s.VerifyEach(false)
	}
	if err != nil {
		unmap()
		return nil, err
	}
	runtime.AddCleanup(s, func(unmap func()) { unmap() }, unmap)
	return s, nil
}

// VerifyRest compares the checksums that opening a file leaves out. Call it before
// copying rows: the copy gets checksums of its own, which would hide damage.
func (s *Segment) VerifyRest() error {
	if s.Path == "" {
		return nil
	}
	return s.VerifyEach(true)
}

// New makes views of an image. It checks that the sizes of the sections fit the header;
// their content is checked where it is used.
func New(b []byte, path string) (*Segment, error) {
	m, err := image.Parse(b, path)
	if err != nil {
		return nil, err
	}
	s := &Segment{
		Image:         m,
		Records:       image.View[record](m, image.Records),
		Heap:          m.Text(image.Strings),
		ids:           image.View[uint32](m, image.IDs),
		Labels:        texts{image.View[uint64](m, image.LabelEnds), m.Text(image.LabelText)},
		Vectors:       image.View[float32](m, image.Vectors),
		Codes:         image.View[int8](m, image.Codes),
		Quantisations: image.View[Quantisation](m, image.Quantisations),
		Lengths:       image.View[float32](m, image.Lengths),
		Terms: Terms{
			Lists:     Lists{image.View[listEnd](m, image.TermEnds), m.Text(image.TermText), image.View[uint32](m, image.TermRows)},
			directory: image.View[uint32](m, image.TermTable),
			Counts:    image.View[uint8](m, image.TermCounts),
			more:      image.View[largeCount](m, image.TermLargeCounts),
		},
		Values: Lists{image.View[listEnd](m, image.ValueEnds), m.Text(image.ValueText), image.View[uint32](m, image.ValueRows)},
	}
	n, lexical := m.Rows, 0
	if m.Lexical {
		lexical = n
	}
	for _, size := range []struct {
		section image.Section
		want    int
	}{
		{image.Records, n * recordSize}, {image.IDs, 4 * hashTableSize(n)},
		{image.Vectors, 4 * n * m.Dimension}, {image.Codes, n * CodeWidth(m.Dimension)}, {image.Quantisations, quantisationSize(m.Dimension) * n},
		{image.Lengths, 4 * lexical}, {image.TermCounts, len(s.Terms.Rows)}, {image.TermTable, 4 * hashTableSize(len(s.Terms.ends))},
	} {
		if have := m.Table[size.section].Length; have != uint64(size.want) {
			return nil, integrity.Damage(m.Path, int64(m.Table[size.section].Offset), "length of the "+image.Names[size.section])
		}
	}
	return s, nil
}

const recordSize = 40

// Quantisation is the scale of a vector's int8 codes: the vector is Scale times the
// codes, plus a rest of length Lost.
type Quantisation struct{ Scale, Lost float32 }

// CodeWidth is the number of codes of a vector: the dimension, rounded up to where the
// kernels are fastest. The rest is zeros.
func CodeWidth(dimension int) int { return (dimension + 63) &^ 63 }

// quantisationSize is the size of a quantisation where there are vectors.
func quantisationSize(dimension int) int {
	if dimension == 0 {
		return 0
	}
	return 8
}

// ID returns the id of a row.
func (s *Segment) ID(r int32) string {
	rec := &s.Records[r]
	return span(s.Heap, rec.Start, uint64(rec.id))
}

// Row returns a row. It shares the memory of the segment.
func (s *Segment) Row(r int32) row.Row {
	rec := &s.Records[r]
	at := rec.Start
	next := func(length uint32) string {
		text := span(s.Heap, at, uint64(length))
		at += uint64(length)
		return text
	}
	return row.Row{
		Sequence: rec.Sequence, ID: next(rec.id), Hash: next(rec.hash), Context: next(rec.context),
		Text: next(rec.text), Meta: next(rec.meta), Label: s.Labels.at(int(rec.Label)),
	}
}

// Label returns the label of a row.
func (s *Segment) Label(r int32) string { return s.Labels.at(int(s.Records[r].Label)) }

// Vector returns the vector of a row. It shares the memory of the segment.
func (s *Segment) Vector(r int32) []float32 { return s.Vectors[int(r)*s.Dimension:][:s.Dimension] }

// Find returns the row with an id, or -1.
func (s *Segment) Find(hash uint64, id string) int32 {
	return s.ids.Find(hash, func(i uint32) bool { return int(i) < s.Rows && s.ID(int32(i)) == id })
}

// span returns length bytes of a text, or none if it is too short.
func span(text string, from, length uint64) string {
	if from > uint64(len(text)) || length > uint64(len(text))-from {
		return ""
	}
	return text[from : from+length]
}

// texts is a list of strings.
type texts struct {
	Ends []uint64
	text string
}

func (t texts) at(i int) string {
	if i < 0 || i >= len(t.Ends) {
		return ""
	}
	from := uint64(0)
	if i > 0 {
		from = t.Ends[i-1]
	}
	return span(t.text, from, t.Ends[i]-from)
}

// LabelNumbers returns the numbers that a segment's records have for labels.
func (s *Segment) LabelNumbers(names []string) []uint32 {
	var numbers []uint32
	for _, name := range names {
		n := sort.Search(len(s.Labels.Ends), func(i int) bool { return s.Labels.at(i) >= name })
		if n < len(s.Labels.Ends) && s.Labels.at(n) == name {
			numbers = append(numbers, uint32(n))
		}
	}
	return numbers
}

// Entry returns a copy of a row as an entry: with texts, also its text, context
// and metadata.
func (s *Segment) Entry(r int32, texts bool) sdk.Entry {
	of := s.Row(r)
	e := sdk.Entry{ID: strings.Clone(of.ID), Label: strings.Clone(of.Label)}
	if of.Hash != "" {
		e.Hash = []byte(of.Hash)
	}
	if texts {
		e.Text, e.Context, e.Meta = strings.Clone(of.Text), strings.Clone(of.Context), row.DecodeMeta(of.Meta)
	}
	return e
}
