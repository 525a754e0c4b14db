package holdout

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

const (
	// maxFolds is into how many folds the rows are divided where all of a knowledge is
	// chosen. A voter never misses more than one part in that many of the knowledge.
	maxFolds = 5
	seed     = 1 // of the choice
)

// Rows are rows of a knowledge that are held out of it.
type Rows struct {
	Items []source.Row // in an order of their own, the same for the same rows
	Folds int

	knowledge *knowledge.Knowledge
	folds     map[string]int // by id, of Items
	vectors   map[string][]float32
	labels    map[string]*label
}

// label is a label of the knowledge.
type label struct {
	rows int       // that have it
	sum  []float64 // of their vectors; nil: not asked for
}

// Choose holds at most n rows out, drawn at random from all that have a label, the same
// ones for the same rows. A row that stands in the knowledge twice is not chosen, as its
// twin would give the label away, and neither is the only one of a label, which nothing
// else tells of. centroids: Prototypes will be called.
func Choose(ctx context.Context, k *knowledge.Knowledge, n int, centroids bool) (*Rows, error) {
	r := &Rows{knowledge: k, folds: map[string]int{}, vectors: map[string][]float32{}, labels: map[string]*label{}}
	chosen, err := r.draw(ctx, n)
	if err == nil {
		r.divide(chosen)
		err = r.read(ctx, centroids)
	}
	if err != nil {
		return nil, fmt.Errorf("hold rows out of knowledge %q: %w", k.Report.Name, err)
	}
	return r, nil
}

// drawn is a row that may be chosen.
type drawn struct {
	id, label string
	content   [16]byte // hash; zero: the store keeps none
	order     uint64   // at random, by id
}

// draw returns at most n rows.
func (r *Rows) draw(ctx context.Context, n int) ([]drawn, error) {
	var all []drawn
	times := map[[16]byte]int{}
	err := r.knowledge.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) {
		d := drawn{id: e.ID, label: e.Label, order: orderOf(e.ID)}
		if copy(d.content[:], e.Hash) > 0 {
			times[d.content]++
		}
		if e.Label == "" {
			return
		}
		if r.labels[e.Label] == nil {
			r.labels[e.Label] = &label{}
		}
		r.labels[e.Label].rows++
		all = append(all, d)
	})
	all = slices.DeleteFunc(all, func(d drawn) bool { return times[d.content] > 1 || r.labels[d.label].rows < 2 })
	slices.SortFunc(all, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id)) })
	return all[:min(n, len(all))], err
}

func orderOf(id string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, seed)) //nolint:errcheck // a hash takes everything
	h.Write([]byte(id))                               //nolint:errcheck // the same
	// The last bytes of an id would change the lowest bits alone: spread them.
	x := h.Sum64()
	x ^= x >> 32
	x *= 0x9E3779B97F4A7C15
	return x ^ x>>29
}

// divide divides rows into folds, those of a label evenly. There are as many folds as
// it takes for each to have at most the maxFolds-th part of the knowledge. Of a label
// none of whose rows would be left outside of a fold, the last chosen one is let go.
func (r *Rows) divide(chosen []drawn) {
	total := 0
	for _, l := range r.labels {
		total += l.rows
	}
	r.Folds = min(max(1, (maxFolds*len(chosen)+total-1)/max(total, 1)), maxFolds)
	byLabel := map[string]int{} // rows so far
	next := 0
	slices.SortStableFunc(chosen, func(a, b drawn) int { return cmp.Compare(a.label, b.label) })
	for _, d := range chosen {
		byLabel[d.label]++
		if in := (byLabel[d.label] + r.Folds - 1) / r.Folds; in >= r.labels[d.label].rows {
			continue
		}
		r.folds[d.id] = next % r.Folds
		next++
	}
}

// read reads the chosen rows and, where centroids are asked for, the vectors.
func (r *Rows) read(ctx context.Context, centroids bool) error {
	err := r.knowledge.Entries(ctx, sdk.Scan{Texts: true, Vectors: centroids}, func(e sdk.Entry) {
		if _, chosen := r.folds[e.ID]; chosen {
			r.keep(e)
		}
		l := r.labels[e.Label]
		if l == nil || !centroids {
			return
		}
		if l.sum == nil {
			l.sum = make([]float64, len(e.Vector))
		}
		for i, x := range e.Vector {
			l.sum[i] += float64(x)
		}
	})
	slices.SortFunc(r.Items, func(a, b source.Row) int {
		return cmp.Or(cmp.Compare(orderOf(a.ID), orderOf(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	for i := range r.Items {
		r.Items[i].Line = i + 1
	}
	return err
}

// keep keeps what is needed of a chosen row. Its vector is a part of its page.
func (r *Rows) keep(e sdk.Entry) {
	r.Items = append(r.Items, source.Row{ID: e.ID, Text: e.Text, Label: e.Label, Meta: e.Meta})
	r.vectors[e.ID] = slices.Clone(e.Vector)
}

// Of reports whether the rows are held out of a knowledge; nil rows are of none.
func (r *Rows) Of(k *knowledge.Knowledge) bool { return r != nil && r.knowledge == k }

// Fold is the fold, from 0, that one of the items is in.
func (r *Rows) Fold(id string) int { return r.folds[id] }

// Without leaves out what is in a fold of rows that a voter learns from.
func (r *Rows) Without(fold int, rows iter.Seq2[[]sdk.TrainingRow, error]) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		for batch, err := range rows {
			outside := slices.DeleteFunc(slices.Clone(batch), func(row sdk.TrainingRow) bool {
				in, chosen := r.folds[row.ID]
				return chosen && in == fold
			})
			if !yield(outside, err) {
				return
			}
		}
	}
}
