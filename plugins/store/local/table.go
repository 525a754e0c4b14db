package local

import (
	"slices"
	"sync"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// table is the committed state of a collection in memory. Rows stand in the
// order of their sequence numbers; one that is deleted or replaced stays as a
// hole until the log is rewritten.
type table struct {
	dimension int
	rows      []row
	place     map[string]int32 // of the living rows, by id
	labels    dictionary
	vectors   vectors
	words     *inverted // nil: no lexical side
	next      uint64    // sequence number
	live      int64     // bytes that the living rows take in a log
	sums      sync.Pool // of *[]float32, for searches
}

func newTable(dimension int, words *inverted) *table {
	return &table{
		dimension: dimension,
		place:     map[string]int32{},
		labels:    dictionary{number: map[string]uint32{}},
		vectors:   vectors{dimension: dimension, kernel: simd.Best()},
		words:     words,
	}
}

func (t *table) apply(c change) {
	for _, id := range c.delete {
		if r, ok := t.place[id]; ok {
			t.remove(r)
		}
	}
	if p := c.put; p != nil {
		t.rows = slices.Grow(t.rows, len(p.id))
		for i := range p.id {
			t.add(p, i)
		}
	}
}

func (t *table) add(p *batch, i int) {
	if old, ok := t.place[p.id[i]]; ok {
		t.remove(old)
	}
	r := int32(len(t.rows))
	t.rows = append(t.rows, row{
		sequence: p.sequence[i], id: p.id[i], label: t.labels.add(p.label[i]),
		hash: p.hash[i], context: p.context[i], text: p.text[i], meta: p.meta[i],
	})
	t.place[p.id[i]] = r
	t.live += t.size(r)
	t.vectors.append(p.vectors[i*t.dimension:][:t.dimension])
	if t.words != nil {
		t.words.add(r, p.context[i], p.text[i])
	}
}

func (t *table) remove(r int32) {
	old := &t.rows[r]
	t.live -= t.size(r)
	if t.words != nil {
		t.words.remove(r, old.context, old.text)
	}
	delete(t.place, old.id)
	*old = row{sequence: old.sequence}
}

// size is what a row takes in a log.
func (t *table) size(r int32) int64 {
	return t.rows[r].size(t.label(r), t.dimension)
}

func (t *table) label(r int32) string { return t.labels.names[t.rows[r].label] }

// entry returns a row as an entry: with texts, also its text, context and
// metadata.
func (t *table) entry(r int32, texts bool) sdk.Entry {
	row := &t.rows[r]
	e := sdk.Entry{ID: row.id, Label: t.label(r)}
	if row.hash != "" {
		e.Hash = []byte(row.hash)
	}
	if texts {
		e.Text, e.Context, e.Meta = row.text, row.context, decodeMeta(row.meta)
	}
	return e
}

// batch returns living rows as a put, for a new log.
func (t *table) batch(rows []int32) *batch {
	p := &batch{}
	for _, r := range rows {
		p.add(t.rows[r], t.label(r), t.vectors.row(r))
	}
	return p
}

// dictionary numbers the labels, of which there are few.
type dictionary struct {
	names  []string
	number map[string]uint32
}

func (d *dictionary) add(name string) uint32 {
	n, ok := d.number[name]
	if !ok {
		n = uint32(len(d.names))
		d.names = append(d.names, name)
		d.number[name] = n
	}
	return n
}
