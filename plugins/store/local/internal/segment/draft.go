package segment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/sdk/analyze"
)

// Draft is rows that no segment has yet, in the order in which they were put. Rows
// that were replaced or deleted since are still in it, but not in Positions.
type Draft struct {
	Rows      []row.Row
	vectors   [][]float32
	Positions map[string]int32 // of the live rows, by id
	Bytes     int64            // of the rows in a log
}

// Add adds rows, which replace earlier ones with their ids.
func (d *Draft) Add(p *row.Batch) {
	dimension := len(p.Vectors) / max(len(p.Rows), 1)
	if d.Positions == nil {
		d.Positions = map[string]int32{}
	}
	for i, r := range p.Rows {
		d.Positions[r.ID] = int32(len(d.Rows))
		d.Rows = append(d.Rows, r)
		d.vectors = append(d.vectors, p.Vectors[i*dimension:][:dimension])
		d.Bytes += r.Size(dimension)
	}
}

// Source returns the live rows to build a segment of, and empties the draft. A nil
// analyzer is none.
func (d *Draft) Source(analyzer *analyze.Analyzer) Source {
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
		EachValue(key, s.rows[i].Label, s.rows[i].Meta, func(key []byte) { s.values.Add(string(key), uint32(i)) })
	}
	s.words.sort()
	s.values.sort()
	*d = Draft{}
	return s
}

// drafted is the rows of a draft with their words and values counted.
type drafted struct {
	rows          []row.Row
	vectors       [][]float32
	lengths       []float32
	words, values inverted
}

// analyze counts the words of each row's context and text.
func (s *drafted) analyze(analyzer analyze.Analyzer) {
	s.lengths = make([]float32, len(s.rows))
	var words []string
	for i := range s.rows {
		words = AppendWords(words[:0], analyzer, s.rows[i].Context, s.rows[i].Text)
		for _, w := range words {
			s.words.Add(w, uint32(i))
		}
		s.lengths[i] = float32(len(words))
	}
}

// AppendWords appends the words of a context and a text. Analyzing them one by one
// gives what analyzing both gives, since a newline separates words everywhere.
func AppendWords(words []string, analyzer analyze.Analyzer, context, text string) []string {
	return analyzer.Append(analyzer.Append(words, context), text)
}

func (s *drafted) count() int                        { return len(s.rows) }
func (s *drafted) Row(i int32) row.Row               { return s.rows[i] }
func (s *drafted) Vector(i int32) []float32          { return s.vectors[i] }
func (s *drafted) Code(int32) ([]int8, Quantisation) { return nil, Quantisation{} }
func (s *drafted) wordIndex() index                  { return &s.words }
func (s *drafted) valueIndex() index                 { return &s.values }
func (s *drafted) length(i int32) (words float32) {
	if s.lengths != nil {
		words = s.lengths[i]
	}
	return words
}

// inverted is an inverted index in the making.
type inverted struct {
	number map[string]uint32
	keys   []string
	lists  [][]posting // by key; rows rise
	order  []uint32    // of the keys, once it is sorted
}

// posting says how often a key occurs in a row.
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
