package segment

import (
	"maps"
	"runtime"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
)

// Source is rows that go into a new segment: those of a draft, or of another
// segment.
type Source interface {
	count() int
	Row(i int32) row.Row
	Vector(i int32) []float32
	Code(i int32) ([]int8, Quantisation) // nil: it was not made yet
	length(i int32) float32              // its words
	wordIndex() index
	valueIndex() index
}

func (s *Segment) count() int        { return s.Rows }
func (s *Segment) wordIndex() index  { return &s.Terms }
func (s *Segment) valueIndex() index { return &s.Values }

// Code returns the int8 codes of a row's vector.
func (s *Segment) Code(i int32) ([]int8, Quantisation) {
	size := CodeWidth(s.Dimension)
	return s.Codes[int(i)*size:][:size], s.Quantisations[i]
}

func (s *Segment) length(i int32) (words float32) {
	if s.Lexical {
		words = s.Lengths[i]
	}
	return words
}

// Input is a source and those of its rows that are left out.
type Input struct {
	Source
	Dead row.Set
}

// builder writes the live rows of its inputs, one input after another, as one
// segment. It merges segments and indexes new rows alike: the result depends on the
// rows only.
type builder struct {
	*image.Writer
	inputs    []Input
	dimension int
	lexical   bool
	to        [][]uint32 // by input and row: the row it becomes; gone: none
	rows      int
	words     uint64
}

const gone = ^uint32(0)

// Build writes a segment.
func Build(w *image.Writer, name uint64, dimension int, lexical bool, inputs []Input) error {
	b := &builder{Writer: w, inputs: inputs, dimension: dimension, lexical: lexical, to: make([][]uint32, len(inputs))}
	for i, in := range inputs {
		b.to[i] = make([]uint32, in.count())
		for r := range b.to[i] {
			if b.to[i][r] = gone; !in.Dead.Has(int32(r)) {
				b.to[i][r] = uint32(b.rows)
				b.rows++
			}
		}
	}
	b.records()
	b.vectors()
	if lexical {
		b.lengths()
		b.index(Source.wordIndex, image.TermRows, image.TermEnds, image.TermText, true)
	}
	b.index(Source.valueIndex, image.ValueRows, image.ValueEnds, image.ValueText, false)
	runtime.KeepAlive(inputs)
	return w.Finish(image.Image{Name: name, Dimension: dimension, Rows: b.rows, Words: b.words, Lexical: lexical})
}

// Each calls do for every live row, in order. Of files it keeps little in
// memory: they may be larger than that.
func (b *builder) each(do func(in *Input, r int32)) {
	const kept = 8 << 10 // rows
	for i := range b.inputs {
		for r, to := range b.to[i] {
			if to != gone {
				do(&b.inputs[i], int32(r))
			}
			if (r+1)%kept == 0 {
				b.inputs[i].release()
			}
		}
		b.inputs[i].release()
	}
}

// release takes what was read of a file out of memory.
func (in *Input) release() {
	if s, ok := in.Source.(*Segment); ok {
		s.Release()
	}
}

// records writes what is not vectors or indexes.
func (b *builder) records() {
	number := map[string]uint32{}
	b.each(func(in *Input, r int32) { number[in.Row(r).Label] = 0 })
	labels := slices.Sorted(maps.Keys(number))
	var ends []uint64
	end := 0
	for i, label := range labels {
		number[label] = uint32(i)
		end += len(label)
		ends = append(ends, uint64(end))
	}
	image.WriteSection(b.Writer, image.LabelEnds, ends)
	b.Begin(image.LabelText)
	for _, label := range labels {
		b.WriteString(label)
	}

	ids := make(HashTable, hashTableSize(b.rows))
	next := uint32(0)
	start := uint64(0)
	b.Begin(image.Records)
	b.each(func(in *Input, r int32) {
		row := in.Row(r)
		rec := record{
			Sequence: row.Sequence, Start: start, id: uint32(len(row.ID)), hash: uint32(len(row.Hash)),
			context: uint32(len(row.Context)), text: uint32(len(row.Text)), meta: uint32(len(row.Meta)), Label: number[row.Label],
		}
		b.Write(image.Bytes([]record{rec}))
		start += uint64(len(row.ID) + len(row.Hash) + len(row.Context) + len(row.Text) + len(row.Meta))
		ids.Add(Hash(row.ID), next)
		next++
	})
	image.WriteSection(b.Writer, image.IDs, ids)
	b.Begin(image.Strings)
	b.each(func(in *Input, r int32) {
		row := in.Row(r)
		for _, s := range [...]string{row.ID, row.Hash, row.Context, row.Text, row.Meta} {
			b.WriteString(s)
		}
	})
}

func (b *builder) vectors() {
	if b.dimension == 0 {
		return
	}
	b.Begin(image.Vectors)
	b.each(func(in *Input, r int32) { b.Write(image.Bytes(in.Vector(r))) })
	quantised := make([]Quantisation, 0, b.rows)
	fresh := make([]int8, CodeWidth(b.dimension))
	b.Begin(image.Codes)
	b.each(func(in *Input, r int32) {
		code, g := in.Code(r)
		if code == nil {
			code = fresh
			g.Scale, g.Lost = simd.Best().Quantise(code, in.Vector(r))
		}
		b.Write(image.Bytes(code))
		quantised = append(quantised, g)
	})
	image.WriteSection(b.Writer, image.Quantisations, quantised)
}

func (b *builder) lengths() {
	b.Begin(image.Lengths)
	b.each(func(in *Input, r int32) {
		length := in.length(r)
		b.words += uint64(length)
		b.Write(image.Bytes([]float32{length}))
	})
}
