package fitted

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk"
)

// This file holds rows of a knowledge out of the searches for them, so that voters can be asked
// about rows with known labels as if they had never seen them.
//
// HoldOut selects rows. Such a row, as an item, is searched among the others (Except), and compared
// with the centroid of its label without it (Prototypes): leave-one-out. A voter that learns from
// the rows cannot be fitted anew for each of them: it is fitted once per fold, on the rows outside
// of it (Without).
//
// Strangers holds whole labels out: to the voters, their rows are texts that belong to no label.
//
// An election learns from the voters' answers to these rows (Wolpert, "Stacked generalization",
// Neural Networks 5, 1992: the level above learns from votes on rows that the level below has not
// seen).

// Except narrows a filter, which may be nil, to exclude a row, or the labels held out with it.
func (r *HeldOut) Except(id string, f *sdk.Filter) *sdk.Filter {
	own := sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{id}}
	if r.strange != nil {
		own.Field, own.Values = sdk.FieldLabel, nil
		for _, label := range slices.Sorted(maps.Keys(r.strange)) {
			if r.strange[label] == r.folds[id] {
				own.Values = append(own.Values, label)
			}
		}
	}
	others := sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{own}}
	if f == nil {
		return &others
	}
	return &sdk.Filter{Op: sdk.FilterAnd, Parts: []sdk.Filter{others, *f}}
}

// Prototypes corrects the centroids found for a row: the centroid of its own label becomes what it
// would be without the row, and labels held out with it go. query is the row's vector as a query.
func (r *HeldOut) Prototypes(id, label string, query []float32, nearest []sdk.Candidate) []sdk.Candidate {
	if r.strange != nil {
		return slices.DeleteFunc(slices.Clone(nearest), func(c sdk.Candidate) bool { return r.out(c.Label, r.folds[id]) })
	}
	at := slices.IndexFunc(nearest, func(c sdk.Candidate) bool { return c.Label == label })
	own, l := r.vectors[id], r.labels[label]
	if at < 0 || own == nil || l == nil || l.sum == nil {
		return nearest // without the row it would be even farther
	}
	var dot, square float64
	for i, x := range l.sum {
		x -= float64(own[i])
		dot += x * float64(query[i])
		square += x * x
	}
	nearest = slices.Clone(nearest)
	nearest[at].Dense = 0
	if square > 0 {
		nearest[at].Dense = float32(dot / math.Sqrt(square))
	}
	slices.SortStableFunc(nearest, func(a, b sdk.Candidate) int { return cmp.Compare(b.Dense, a.Dense) })
	return nearest
}

const (
	// maxFolds is the number of folds if all rows of a knowledge are chosen. So a voter never lacks
	// more than one part in that many of the knowledge.
	maxFolds = 5
	seed     = 1 // of the random choice
)

// HeldOut is the set of rows held out of a knowledge.
type HeldOut struct {
	Items []source.Row // in a pseudo-random order, the same for the same rows
	Folds int

	knowledge *knowledge.Knowledge
	folds     map[string]int // by id, for Items
	vectors   map[string][]float32
	labels    map[string]*label
	strange   map[string]int // labels held out whole, by fold; nil: rows are held out alone
}

// label is a label of the knowledge.
type label struct {
	rows int       // number of rows
	sum  []float64 // of their vectors; nil: not asked for
}

// HoldOut holds out at most n rows, drawn at random from all labelled ones, the same for the same
// rows. It leaves out a row that occurs twice in the knowledge, since its twin would give the label
// away, and the only row of a label, since nothing else represents that label. Set centroids if
// Prototypes will be called.
func HoldOut(ctx context.Context, k *knowledge.Knowledge, n int, centroids bool) (*HeldOut, error) {
	r := &HeldOut{knowledge: k, folds: map[string]int{}, vectors: map[string][]float32{}, labels: map[string]*label{}}
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

const (
	fewLabels = 4  // among fewer labels, the others tell nothing about a text that belongs to none
	strange   = 20 // labels that are enough to hold out
)

// Strangers holds out labels with at most n of their rows, all drawn at random. The rows of Items have
// no label, since the voters know none that fits. A fifth of the labels is held out at a time, and of
// few labels one fifth after the other. There are no rows if the knowledge has fewer than four labels.
func Strangers(ctx context.Context, k *knowledge.Knowledge, n int) (*HeldOut, error) {
	r := &HeldOut{knowledge: k, folds: map[string]int{}, vectors: map[string][]float32{}, labels: map[string]*label{}, strange: map[string]int{}}
	labels := slices.Clone(k.Labels)
	if len(labels) < fewLabels {
		return r, nil
	}
	slices.SortFunc(labels, func(a, b string) int { return cmp.Or(cmp.Compare(orderOf(a), orderOf(b)), cmp.Compare(a, b)) })
	parts := min(maxFolds, len(labels))
	r.Folds = min(parts, (strange*parts+len(labels)-1)/len(labels))
	for i, label := range labels {
		if i%parts < r.Folds {
			r.strange[label] = i % parts
		}
	}
	var all []drawn
	err := k.Entries(ctx, sdk.Scan{Labels: slices.Sorted(maps.Keys(r.strange))}, func(e sdk.Entry) {
		all = append(all, drawn{id: e.ID, label: e.Label, order: orderOf(e.ID)})
	})
	slices.SortFunc(all, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id)) })
	for _, d := range all[:min(n, len(all))] {
		r.folds[d.id] = r.strange[d.label]
	}
	if err == nil {
		err = r.read(ctx, false)
	}
	if err != nil {
		return nil, fmt.Errorf("hold labels out of knowledge %q: %w", k.Report.Name, err)
	}
	for i := range r.Items {
		r.Items[i].Label = ""
	}
	return r, nil
}

// out reports whether a label is held out in a fold.
func (r *HeldOut) out(label string, fold int) bool {
	in, chosen := r.strange[label]
	return chosen && in == fold
}

// drawn is a candidate row.
type drawn struct {
	id, label string
	content   [16]byte // hash; zero: the store keeps none
	order     uint64   // random, by id
}

// draw counts the rows of each label, and returns at most n random rows to hold out.
func (r *HeldOut) draw(ctx context.Context, n int) ([]drawn, error) {
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
	// The last bytes of an id would change only the lowest bits: spread them.
	x := h.Sum64()
	x ^= x >> 32
	x *= 0x9E3779B97F4A7C15
	return x ^ x>>29
}

// divide splits rows into folds, evenly for each label. It makes as many folds as it takes for each
// to have at most the maxFolds-th part of the knowledge. If a label would have no row outside of a
// fold, its last chosen row is dropped.
func (r *HeldOut) divide(chosen []drawn) {
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

// read reads the chosen rows and, with centroids, the vectors.
func (r *HeldOut) read(ctx context.Context, centroids bool) error {
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

// keep stores a chosen row. It clones the vector, which is a part of its page.
func (r *HeldOut) keep(e sdk.Entry) {
	r.Items = append(r.Items, source.Row{ID: e.ID, Text: e.Text, Label: e.Label, Meta: e.Meta})
	r.vectors[e.ID] = slices.Clone(e.Vector)
}

// Of reports whether the rows are held out of this knowledge; nil rows are of none.
func (r *HeldOut) Of(k *knowledge.Knowledge) bool { return r != nil && r.knowledge == k }

// Fold returns the fold of an item, from 0.
func (r *HeldOut) Fold(id string) int { return r.folds[id] }

// Without returns a voter's training rows without those in a fold, or of its labels.
func (r *HeldOut) Without(fold int, rows iter.Seq2[[]sdk.TrainingRow, error]) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		for batch, err := range rows {
			outside := slices.DeleteFunc(slices.Clone(batch), func(row sdk.TrainingRow) bool {
				if r.strange != nil {
					return r.out(row.Label, fold)
				}
				in, chosen := r.folds[row.ID]
				return chosen && in == fold
			})
			if !yield(outside, err) {
				return
			}
		}
	}
}
