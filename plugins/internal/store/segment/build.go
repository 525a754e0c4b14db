package segment

import (
	"cmp"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/support"
)

// Source provides rows for a new segment: rows of a draft, or of another segment.
type Source interface {
	count() int
	Row(i int32) Row
	// VectorsOf returns the vectors that contain a row's vector, and its index there.
	VectorsOf(i int32) (*Vectors, int)
	Code(i int32) ([]int8, Quantisation) // nil: not computed yet
	length(i int32) float32              // number of words
	wordIndex() index
	valueIndex() index
}

func (s *Segment) count() int        { return s.Rows }
func (s *Segment) wordIndex() index  { return &s.Terms }
func (s *Segment) valueIndex() index { return &s.Values }

// VectorsOf returns the vectors that contain a row's vector, and its index there.
func (s *Segment) VectorsOf(i int32) (*Vectors, int) { return &s.vectors, int(i) }

// Code returns the int8 codes of a row's vector; nil: it is sparse.
func (s *Segment) Code(i int32) ([]int8, Quantisation) {
	if s.Sparse {
		return nil, Quantisation{}
	}
	size := CodeWidth(s.Dimension)
	return s.Codes[int(i)*size:][:size], s.Quantisations[i]
}

func (s *Segment) length(i int32) (words float32) {
	if s.Lexical {
		words = s.Lengths[i]
	}
	return words
}

// Input is a source with the set of its removed rows.
type Input struct {
	Source
	Dead RowSet
}

// builder writes the live rows of its inputs, one input after another, as one segment. It treats segments and new
// rows alike, so the result depends only on the rows.
type builder struct {
	*ImageWriter
	inputs    []Input
	dimension int
	lexical   bool
	to        [][]uint32 // by input and row: the number of the row in the new segment; gone: none
	rows      int
	words     uint64
	sparse    bool // vectors are sparse
}

const gone = ^uint32(0)

// Build writes a segment.
func Build(w *ImageWriter, name uint64, dimension int, lexical bool, inputs []Input) error {
	b := &builder{ImageWriter: w, inputs: inputs, dimension: dimension, lexical: lexical, to: make([][]uint32, len(inputs))}
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
		b.index(Source.wordIndex, TermRows, TermEnds, TermText, true)
	}
	b.index(Source.valueIndex, ValueRows, ValueEnds, ValueText, false)
	runtime.KeepAlive(inputs)
	return w.Finish(Image{Name: name, Dimension: dimension, Rows: b.rows, Words: b.words, Lexical: lexical, Sparse: b.sparse})
}

// Each calls do for every live row, in order.
func (b *builder) each(do func(in *Input, r int32)) {
	for i := range b.inputs {
		for r, to := range b.to[i] {
			if to != gone {
				do(&b.inputs[i], int32(r))
			}
		}
	}
}

// records writes everything but vectors and indexes.
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
	writeSection(b.ImageWriter, LabelEnds, ends)
	b.Begin(LabelText)
	for _, label := range labels {
		b.WriteString(label)
	}

	ids := make(hashTable, hashTableSize(b.rows))
	next := uint32(0)
	start := uint64(0)
	b.Begin(Records)
	b.each(func(in *Input, r int32) {
		row := in.Row(r)
		rec := record{
			Sequence: row.Sequence, Start: start, id: uint32(len(row.ID)), hash: uint32(len(row.Hash)),
			context: uint32(len(row.Context)), text: uint32(len(row.Text)), meta: uint32(len(row.Meta)), Label: number[row.Label],
		}
		b.Write(bytesOf([]record{rec}))
		start += uint64(len(row.ID) + len(row.Hash) + len(row.Context) + len(row.Text) + len(row.Meta))
		ids.Add(Hash(row.ID), next)
		next++
	})
	writeSection(b.ImageWriter, IDs, ids)
	b.Begin(Strings)
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
	for decided, i := false, 0; i < len(b.inputs) && !decided; i++ { // the first non-zero vector decides
		for r := 0; r < len(b.to[i]) && !decided; r++ {
			if b.to[i][r] != gone {
				x := vectorOf(&b.inputs[i], int32(r))
				decided, b.sparse = !IsZero(x), mostlyZero(x)
			}
		}
	}
	b.Begin(VectorNumbers)
	if b.sparse {
		b.sparseVectors()
		return
	}
	b.each(func(in *Input, r int32) { b.Write(bytesOf(vectorOf(in, r))) })
	quantised := make([]Quantisation, 0, b.rows)
	fresh := make([]int8, CodeWidth(b.dimension))
	b.Begin(Codes)
	b.each(func(in *Input, r int32) {
		code, g := in.Code(r)
		if code == nil {
			code = fresh
			g.Scale, g.Lost = simd.Best().Quantise(code, vectorOf(in, r))
		}
		b.Write(bytesOf(code))
		quantised = append(quantised, g)
	})
	writeSection(b.ImageWriter, Quantisations, quantised)
}

func vectorOf(in *Input, r int32) []float32 {
	of, i := in.VectorsOf(r)
	return of.At(i)
}

func (b *builder) sparseVectors() {
	ends, end := make([]uint64, 0, b.rows), 0
	var numbers []simd.Term
	b.each(func(in *Input, r int32) {
		if of, i := in.VectorsOf(r); of.sparse() {
			numbers = of.NumbersAt(i)
		} else {
			numbers = appendNumbersOf(numbers[:0:0], of.At(i))
		}
		b.Write(bytesOf(numbers))
		end += len(numbers)
		ends = append(ends, uint64(end))
	})
	writeSection(b.ImageWriter, Codes, ends)
}

func (b *builder) lengths() {
	b.Begin(Lengths)
	b.each(func(in *Input, r int32) {
		length := in.length(r)
		b.words += uint64(length)
		b.Write(bytesOf([]float32{length}))
	})
}

// Draft holds rows that are in no segment yet, in the order in which they were put. Rows that were replaced or
// deleted since are still in Rows, but not in Positions.
type Draft struct {
	Rows      []Row
	vectors   []vectorAt
	Positions map[string]int32 // of the live rows, by id
	Bytes     int64            // of the rows in a log
}

// vectorAt is the position of a vector in a list of vectors.
type vectorAt struct {
	of *Vectors
	i  int
}

// Add adds rows. A row replaces an earlier one with the same id.
func (d *Draft) Add(p *Batch) {
	if d.Positions == nil {
		d.Positions = map[string]int32{}
	}
	for i, r := range p.Rows {
		d.Positions[r.ID] = int32(len(d.Rows))
		d.Rows = append(d.Rows, r)
		d.vectors = append(d.vectors, vectorAt{&p.Vectors, i})
		d.Bytes += r.Size(&p.Vectors, i)
	}
}

// Source returns the live rows as a source for a segment, and empties the draft. A nil analyzer means no words.
func (d *Draft) Source(analyzer *support.Analyzer) Source {
	live := 0
	for i, r := range d.Rows {
		if at, ok := d.Positions[r.ID]; ok && at == int32(i) {
			d.Rows[live], d.vectors[live] = r, d.vectors[i]
			live++
		}
	}
	s := &drafted{rows: d.Rows[:live], vectors: d.vectors[:live]}
	s.words.number, s.values.number = map[string]uint32{}, map[string]uint32{}
	if analyzer != nil {
		s.analyze(*analyzer)
	}
	var key []byte
	for i := range s.rows {
		eachValue(key, s.rows[i].Label, s.rows[i].Meta, func(key []byte) { s.values.Add(string(key), uint32(i)) })
	}
	s.words.sort()
	s.values.sort()
	*d = Draft{}
	return s
}

// drafted holds the rows of a draft, with their words and values counted.
type drafted struct {
	rows          []Row
	vectors       []vectorAt
	lengths       []float32
	words, values inverted
}

// analyze counts the words of each row's context and text.
func (s *drafted) analyze(analyzer support.Analyzer) {
	s.lengths = make([]float32, len(s.rows))
	var words []string
	for i := range s.rows {
		words = appendWords(words[:0], analyzer, s.rows[i].Context, s.rows[i].Text)
		for _, w := range words {
			s.words.Add(w, uint32(i))
		}
		s.lengths[i] = float32(len(words))
	}
}

// appendWords appends the words of a context and a text. Analyzing them separately gives the same words as analyzing
// them together, since a newline separates words in any case.
func appendWords(words []string, analyzer support.Analyzer, context, text string) []string {
	return analyzer.Append(analyzer.Append(words, context), text)
}

func (s *drafted) count() int                        { return len(s.rows) }
func (s *drafted) Row(i int32) Row                   { return s.rows[i] }
func (s *drafted) VectorsOf(i int32) (*Vectors, int) { return s.vectors[i].of, s.vectors[i].i }
func (s *drafted) Code(int32) ([]int8, Quantisation) { return nil, Quantisation{} }
func (s *drafted) wordIndex() index                  { return &s.words }
func (s *drafted) valueIndex() index                 { return &s.values }
func (s *drafted) length(i int32) (words float32) {
	if s.lengths != nil {
		words = s.lengths[i]
	}
	return words
}

// inverted is an inverted index that is being built.
type inverted struct {
	number map[string]uint32
	keys   []string
	lists  [][]posting // by key; rows are in rising order
	order  []uint32    // sorted order of the keys, once sorted
}

// posting is a row with the number of times that a key occurs in it.
type posting struct{ row, count uint32 }

func (v *inverted) Add(key string, row uint32) {
	n, ok := v.number[key]
	if !ok {
		n, key = uint32(len(v.keys)), strings.Clone(key)
		v.number[key] = n
		v.keys, v.lists = append(v.keys, key), append(v.lists, nil)
	}
	list := v.lists[n]
	if last := len(list) - 1; last >= 0 && list[last].row == row {
		list[last].count++
		return
	}
	v.lists[n] = append(list, posting{row, 1})
}

func (v *inverted) sort() {
	v.order = make([]uint32, len(v.keys))
	for i := range v.order {
		v.order[i] = uint32(i)
	}
	slices.SortFunc(v.order, func(a, b uint32) int { return cmp.Compare(v.keys[a], v.keys[b]) })
}

func (v *inverted) Len() int           { return len(v.order) }
func (v *inverted) Key(key int) string { return v.keys[v.order[key]] }

func (v *inverted) Each(key int, do func(row, count uint32)) {
	for _, p := range v.lists[v.order[key]] {
		do(p.row, p.count)
	}
}

// hashTable is a hash table of row or word numbers, with open addressing and linear probing. A cell is a number plus
// 1, or 0 if empty. The table stores no keys: the caller of Find compares them.
type hashTable []uint32

// hashTableSize is the number of cells for n keys: a power of two, with at least a quarter of the cells empty.
func hashTableSize(n int) int {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(n+n/3))
}

// Hash is FNV-1a (Fowler, Noll and Vo, 64 bits). Its upper half is folded into the lower one, because tables use the
// lower bits.
func Hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h ^ h>>32
}

// Add adds a number that is not in the table yet.
func (d hashTable) Add(hash uint64, number uint32) {
	mask := uint64(len(d) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		if d[at] == 0 {
			d[at] = number + 1
			return
		}
	}
}

// Find returns the number with this hash for which is reports true, or -1.
func (d hashTable) Find(hash uint64, is func(number uint32) bool) int32 {
	mask := uint64(len(d) - 1)
	for n := range uint64(len(d)) { // a damaged table may have no empty cell
		switch cell := d[(hash+n)&mask]; {
		case cell == 0:
			return -1
		case is(cell - 1):
			return int32(cell - 1)
		}
	}
	return -1
}
