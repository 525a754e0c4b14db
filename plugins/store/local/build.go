package local

import (
	"runtime"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// source is rows that go into a new segment: those of a draft, or of another
// segment.
type source interface {
	count() int
	row(i int32) row
	vector(i int32) []float32
	coarse(i int32) ([]int8, grid) // nil: it was not made yet
	length(i int32) float32        // its words
	wordIndex() index
	valueIndex() index
}

func (s *segment) count() int        { return s.rows }
func (s *segment) wordIndex() index  { return &s.terms }
func (s *segment) valueIndex() index { return &s.values }

func (s *segment) coarse(i int32) ([]int8, grid) {
	size := width(s.dimension)
	return s.codes[int(i)*size:][:size], s.grids[i]
}

func (s *segment) length(i int32) (words float32) {
	if s.lexical {
		words = s.lengths[i]
	}
	return words
}

// input is a source and those of its rows that are left out.
type input struct {
	source
	dead bitmap
}

// builder writes the living rows of its inputs, one input after another, as one
// segment. Merging segments and indexing new rows are the same to it: the
// result depends on the rows only.
type builder struct {
	*imageWriter
	inputs    []input
	dimension int
	lexical   bool
	to        [][]uint32 // by input and row: the row it becomes; gone: none
	rows      int
	words     uint64
}

const gone = ^uint32(0)

// build writes a segment.
func build(w *imageWriter, name uint64, dimension int, lexical bool, inputs []input) error {
	b := &builder{imageWriter: w, inputs: inputs, dimension: dimension, lexical: lexical, to: make([][]uint32, len(inputs))}
	for i, in := range inputs {
		b.to[i] = make([]uint32, in.count())
		for r := range b.to[i] {
			if b.to[i][r] = gone; !in.dead.has(int32(r)) {
				b.to[i][r] = uint32(b.rows)
				b.rows++
			}
		}
	}
	b.records()
	b.vectors()
	if lexical {
		b.lengths()
		b.index(source.wordIndex, sectionWordRows, sectionWordEnds, sectionWordText, true)
	}
	b.index(source.valueIndex, sectionValueRows, sectionValueEnds, sectionValueText, false)
	runtime.KeepAlive(inputs)
	return w.finish(image{name: name, dimension: dimension, rows: b.rows, words: b.words, lexical: lexical})
}

// each calls do for every living row, in order. Of files it keeps little in
// memory: they may be larger than that.
func (b *builder) each(do func(in *input, r int32)) {
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
func (in *input) release() {
	if s, ok := in.source.(*segment); ok {
		s.release()
	}
}

// records writes what is not vectors or indexes.
func (b *builder) records() {
	number := map[string]uint32{}
	b.each(func(in *input, r int32) {
		if label := in.row(r).label; number[label] == 0 {
			number[label] = 1
		}
	})
	labels := make([]string, 0, len(number))
	for label := range number {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	var ends []uint64
	end := 0
	for i, label := range labels {
		number[label] = uint32(i)
		end += len(label)
		ends = append(ends, uint64(end))
	}
	writeSection(b.imageWriter, sectionLabelEnds, ends)
	b.begin(sectionLabelText)
	for _, label := range labels {
		b.writeString(label)
	}

	ids := make(directory, directorySize(b.rows))
	next := uint32(0)
	start := uint64(0)
	b.begin(sectionRecords)
	b.each(func(in *input, r int32) {
		row := in.row(r)
		rec := record{
			sequence: row.sequence, start: start, id: uint32(len(row.id)), hash: uint32(len(row.hash)),
			context: uint32(len(row.context)), text: uint32(len(row.text)), meta: uint32(len(row.meta)), label: number[row.label],
		}
		b.write(bytesOf([]record{rec}))
		start += uint64(len(row.id) + len(row.hash) + len(row.context) + len(row.text) + len(row.meta))
		ids.add(hash(row.id), next)
		next++
	})
	writeSection(b.imageWriter, sectionDirectory, ids)
	b.begin(sectionHeap)
	b.each(func(in *input, r int32) {
		row := in.row(r)
		for _, s := range [...]string{row.id, row.hash, row.context, row.text, row.meta} {
			b.writeString(s)
		}
	})
}

func (b *builder) vectors() {
	if b.dimension == 0 {
		return
	}
	b.begin(sectionVectors)
	b.each(func(in *input, r int32) { b.write(bytesOf(in.vector(r))) })
	grids := make([]grid, 0, b.rows)
	fresh := make([]int8, width(b.dimension))
	b.begin(sectionCodes)
	b.each(func(in *input, r int32) {
		code, g := in.coarse(r)
		if code == nil {
			code = fresh
			g.scale, g.lost = simd.Best().Quantise(code, in.vector(r))
		}
		b.write(bytesOf(code))
		grids = append(grids, g)
	})
	writeSection(b.imageWriter, sectionGrids, grids)
}

func (b *builder) lengths() {
	b.begin(sectionLengths)
	b.each(func(in *input, r int32) {
		length := in.length(r)
		b.words += uint64(length)
		b.write(bytesOf([]float32{length}))
	})
}
