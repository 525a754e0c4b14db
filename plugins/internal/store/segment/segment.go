package segment

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Segment is some rows with every index over them: an image, mapped from a file or in memory, and views of its
// sections. It never changes. Strings and slices from a segment are valid only while the segment is reachable. To
// keep one longer, copy it; during work on one, keep the segment alive.
type Segment struct {
	*Image

	Records       []record
	Heap          string
	ids           hashTable
	Labels        texts
	vectors       Vectors
	Codes         []int8         // of dense vectors
	Quantisations []Quantisation // of dense vectors
	Lengths       []float32      // number of words by row
	Terms         Terms
	Values        Lists
}

// record is the fixed-size part of a row. Its strings follow one another in the heap: id, hash, context, text, meta.
type record struct {
	Sequence, Start               uint64
	id, hash, context, text, meta uint32 // lengths
	Label                         uint32
}

// Path returns the file of a segment.
func Path(dir string, name uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", name, SegmentSuffix))
}

// SegmentSuffix ends the file names of segments.
const SegmentSuffix = ".segment"

// OpenSegment maps the file of a segment.
func OpenSegment(path string) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, unmap, err := support.Map(f)
	if err != nil {
		return nil, err
	}
	s, err := newSegment(b, path)
	if err == nil {
		err = s.verifyEach(false)
	}
	if err != nil {
		unmap()
		return nil, err
	}
	runtime.AddCleanup(s, func(unmap func()) { unmap() }, unmap)
	return s, nil
}

// VerifyRest compares the checksums that opening a file skips. Call it before copying rows: the copy gets its own
// checksums, which would hide damage.
func (s *Segment) VerifyRest() error {
	if s.Path == "" {
		return nil
	}
	return s.verifyEach(true)
}

// newSegment creates views of an image. It checks that the sizes of the sections match the header. Code that uses the
// content checks it.
func newSegment(b []byte, path string) (*Segment, error) {
	m, err := ParseImage(b, path)
	if err != nil {
		return nil, err
	}
	s := &Segment{
		Image:   m,
		Records: viewOf[record](m, Records),
		Heap:    m.Text(Strings),
		ids:     viewOf[uint32](m, IDs),
		Labels:  texts{viewOf[uint64](m, LabelEnds), m.Text(LabelText)},
		vectors: Vectors{Dimension: m.Dimension},
		Lengths: viewOf[float32](m, Lengths),
		Terms: Terms{
			Lists:     Lists{viewOf[listEnd](m, TermEnds), m.Text(TermText), viewOf[uint32](m, TermRows)},
			directory: viewOf[uint32](m, TermTable),
			Counts:    viewOf[uint8](m, TermCounts),
			more:      viewOf[largeCount](m, TermLargeCounts),
		},
		Values: Lists{viewOf[listEnd](m, ValueEnds), m.Text(ValueText), viewOf[uint32](m, ValueRows)},
	}
	n, lexical := m.Rows, 0
	if m.Lexical {
		lexical = n
	}
	vectors, codes, quantisations := 4*n*m.Dimension, n*CodeWidth(m.Dimension), quantisationSize(m.Dimension)*n
	if m.Sparse {
		s.vectors.Numbers, s.vectors.Ends = viewOf[simd.Term](m, VectorNumbers), viewOf[uint64](m, Codes)
		vectors, codes, quantisations = 8*len(s.vectors.Numbers), 8*n, 0
	} else {
		s.vectors.Dense, s.Codes, s.Quantisations = viewOf[float32](m, VectorNumbers), viewOf[int8](m, Codes), viewOf[Quantisation](m, Quantisations)
	}
	for _, size := range []struct {
		section Section
		want    int
	}{
		{Records, n * recordSize}, {IDs, 4 * hashTableSize(n)},
		{VectorNumbers, vectors}, {Codes, codes}, {Quantisations, quantisations},
		{Lengths, 4 * lexical}, {TermCounts, len(s.Terms.Rows)}, {TermTable, 4 * hashTableSize(len(s.Terms.ends))},
	} {
		if have := m.Table[size.section].Length; have != uint64(size.want) {
			return nil, Damage(m.Path, int64(m.Table[size.section].Offset), "length of the "+SectionNames[size.section])
		}
	}
	return s, nil
}

const recordSize = 40

// Quantisation gives the meaning of a row's int8 codes.
type Quantisation = simd.Quantisation

// CodeWidth is the number of codes of a vector: the dimension, rounded up to the next width at which kernels are
// fastest. The rest is zeros.
func CodeWidth(dimension int) int { return (dimension + 63) &^ 63 }

// quantisationSize is the size of a quantisation, or 0 without vectors.
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
func (s *Segment) Row(r int32) Row {
	rec := &s.Records[r]
	at := rec.Start
	next := func(length uint32) string {
		text := span(s.Heap, at, uint64(length))
		at += uint64(length)
		return text
	}
	return Row{
		Sequence: rec.Sequence, ID: next(rec.id), Hash: next(rec.hash), Context: next(rec.context),
		Text: next(rec.text), Meta: next(rec.meta), Label: s.Labels.at(int(rec.Label)),
	}
}

// Label returns the label of a row.
func (s *Segment) Label(r int32) string { return s.Labels.at(int(s.Records[r].Label)) }

// Vector returns the vector of a row. It may share the memory of the segment.
func (s *Segment) Vector(r int32) []float32 { return s.vectors.At(int(r)) }

// Find returns the row with an id, or -1.
func (s *Segment) Find(hash uint64, id string) int32 {
	return s.ids.Find(hash, func(i uint32) bool { return int(i) < s.Rows && s.ID(int32(i)) == id })
}

// span returns length bytes of a text, or none if the text is too short.
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

// labelNumbers returns the numbers of labels in a segment's records.
func (s *Segment) labelNumbers(names []string) []uint32 {
	var numbers []uint32
	for _, name := range names {
		n := sort.Search(len(s.Labels.Ends), func(i int) bool { return s.Labels.at(i) >= name })
		if n < len(s.Labels.Ends) && s.Labels.at(n) == name {
			numbers = append(numbers, uint32(n))
		}
	}
	return numbers
}

// entry returns a copy of a row as an entry. With texts, the entry has its text, context and metadata.
func (s *Segment) entry(r int32, texts bool) sdk.Entry {
	of := s.Row(r)
	e := sdk.Entry{ID: strings.Clone(of.ID), Label: strings.Clone(of.Label)}
	if of.Hash != "" {
		e.Hash = []byte(of.Hash)
	}
	if texts {
		e.Text, e.Context, e.Meta = strings.Clone(of.Text), strings.Clone(of.Context), DecodeMeta(of.Meta)
	}
	return e
}

// The label and the metadata of a row are keys of an index. Keys of the same field and type are adjacent and in the
// order of their values. A field is encoded as
//
//	'l'                          the label
//	'm', length of the key, key  metadata; the length is a big-endian u32
//
// After the field comes the type, 'b', 'f' or 's', and then the value: '0' or '1'; a float64 as a big-endian u64 with
// its sign bit inverted, or all bits if it is negative; the first ValueBytes bytes of a string.

// ValueBytes is how much of a string the index contains. A string with that many bytes in the index may be longer;
// only the row has all of it.
const ValueBytes = 64

// AppendField appends the prefix of a field's keys.
func AppendField(b []byte, field sdk.Field, key string) []byte {
	if field == sdk.FieldLabel {
		return append(b, 'l')
	}
	return append(binary.BigEndian.AppendUint32(append(b, 'm'), uint32(len(key))), key...)
}

// AppendValue appends a type and a value. It returns false for NaN, which is neither equal to nor greater than
// anything.
func AppendValue(b []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case bool:
		return append(b, 'b', bit(v)), true
	case float64:
		bits := math.Float64bits(v)
		if v == 0 {
			bits = 0 // -0 equals 0
		}
		if bits>>63 != 0 {
			bits = ^bits
		} else {
			bits |= 1 << 63
		}
		return binary.BigEndian.AppendUint64(append(b, 'f'), bits), !math.IsNaN(v)
	case string:
		return append(append(b, 's'), v[:min(len(v), ValueBytes)]...), true
	}
	return b, false
}

// eachValue calls do with the index keys of a row. It uses b's memory if that suffices.
func eachValue(b []byte, label, meta string, do func(key []byte)) {
	b = append(AppendField(b[:0], sdk.FieldLabel, ""), 's')
	b = append(b, label[:min(len(label), ValueBytes)]...)
	do(b)
	eachMeta(meta, func(key string, value any) {
		b = AppendField(b[:0], sdk.FieldMeta, key)
		var ok bool
		if b, ok = AppendValue(b, value); ok {
			do(slices.Clip(b))
		}
	})
}
