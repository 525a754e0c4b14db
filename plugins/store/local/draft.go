package local

import (
	"cmp"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk/analyze"
)

// draft is rows that were put and that no segment has yet, in the order in which
// they were put. A row that was replaced or deleted since is dead.
type draft struct {
	rows    []row
	vectors [][]float32
	place   map[string]int32 // of the living rows, by id
	bytes   int64            // of the rows in a log
}

func (d *draft) add(p *batch, dimension int) {
	if d.place == nil {
		d.place = map[string]int32{}
	}
	for i, r := range p.rows {
		d.place[r.id] = int32(len(d.rows))
		d.rows = append(d.rows, r)
		d.vectors = append(d.vectors, p.vectors[i*dimension:][:dimension])
		d.bytes += r.size(dimension)
	}
}

// source returns the living rows as something to build a segment of. The draft
// is gone then. A nil analyzer is none.
func (d *draft) source(analyzer *analyze.Analyzer) source {
	living := 0
	for i, r := range d.rows {
		if at, ok := d.place[r.id]; ok && at == int32(i) {
			d.rows[living], d.vectors[living] = r, d.vectors[i]
			living++
		}
	}
	s := &drafted{rows: d.rows[:living], vectors: d.vectors[:living]}
	s.words.number, s.values.number = map[string]uint32{}, map[string]uint32{}
	if analyzer != nil {
		s.analyze(*analyzer)
	}
	var key []byte
	for i := range s.rows {
		eachValue(key, s.rows[i].label, s.rows[i].meta, func(key []byte) { s.values.add(string(key), uint32(i)) })
	}
	s.words.sort()
	s.values.sort()
	*d = draft{}
	return s
}

// drafted is the rows of a draft with their words and values counted.
type drafted struct {
	rows          []row
	vectors       [][]float32
	lengths       []float32
	words, values inverted
}

// analyze counts the words of each row's context and text. A newline separates
// words under every analyzer, so that two texts can be taken one after the other.
func (s *drafted) analyze(analyzer analyze.Analyzer) {
	s.lengths = make([]float32, len(s.rows))
	var words []string
	for i := range s.rows {
		words = appendWords(words[:0], analyzer, s.rows[i].context, s.rows[i].text)
		for _, w := range words {
			s.words.add(w, uint32(i))
		}
		s.lengths[i] = float32(len(words))
	}
}

func appendWords(words []string, analyzer analyze.Analyzer, context, text string) []string {
	return analyzer.Append(analyzer.Append(words, context), text)
}

func (s *drafted) count() int                  { return len(s.rows) }
func (s *drafted) row(i int32) row             { return s.rows[i] }
func (s *drafted) vector(i int32) []float32    { return s.vectors[i] }
func (s *drafted) coarse(int32) ([]int8, grid) { return nil, grid{} }
func (s *drafted) wordIndex() index            { return &s.words }
func (s *drafted) valueIndex() index           { return &s.values }
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

func (v *inverted) add(key string, row uint32) {
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

func (v *inverted) len() int           { return len(v.order) }
func (v *inverted) key(key int) string { return v.keys[v.order[key]] }

func (v *inverted) each(key int, do func(row, count uint32)) {
	for _, p := range v.lists[v.order[key]] {
		do(p.row, p.count)
	}
}
