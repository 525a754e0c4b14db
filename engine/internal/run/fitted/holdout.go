package fitted

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// This file holds rows of a knowledge out of the searches for them, so that voters can be asked
// about rows with known labels as about new items.
//
// HoldOut selects rows. Each held-out row is used as an item: the search excludes the row itself
// (Except), and the centroid of its label is computed without it (Prototypes). This is
// leave-one-out. A voter that learns from the rows cannot be fitted anew for each row: it is fitted
// once per fold, on the rows outside the fold (Without).
//
// An election learns from the voters' answers to these rows (Wolpert, "Stacked generalization",
// Neural Networks 5, 1992: the level above learns from votes on rows that the level below has not
// seen).

// Except narrows a filter, which may be nil, to exclude a row.
func (r *HeldOut) Except(id string, f *sdk.Filter) *sdk.Filter {
	others := sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{{Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{id}}}}
	if f == nil {
		return &others
	}
	return &sdk.Filter{Op: sdk.FilterAnd, Parts: []sdk.Filter{others, *f}}
}

// Prototypes corrects the centroids found for a row: the centroid of its own label is computed
// without the row. query is the row's vector as a query.
func (r *HeldOut) Prototypes(id, label string, query []float32, nearest []sdk.Candidate) []sdk.Candidate {
	for _, one := range r.form.Split(label) {
		nearest = r.prototypes(id, one, query, nearest)
	}
	return nearest
}

func (r *HeldOut) prototypes(id, label string, query []float32, nearest []sdk.Candidate) []sdk.Candidate {
	at := slices.IndexFunc(nearest, func(c sdk.Candidate) bool { return c.Label == label })
	own, l := r.vectors[id], r.labels[label]
	if at < 0 || own == nil || l == nil || l.sum == nil {
		return nearest // without the row the centroid would be even farther
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

// Voted is the maximum number of held-out rows from whose votes an election learns. More rows would
// hardly improve the learnt weights of the voters; with fewer rows, voters that learn need fewer folds.
const Voted = 1000

const (
	// maxFolds is the number of folds if all rows of a knowledge are chosen. So a voter is never
	// fitted without more than the maxFolds-th part of the knowledge.
	maxFolds = 5
	seed     = 1 // seed of the random choice
)

// HeldOut is the set of rows held out of a knowledge.
type HeldOut struct {
	Items []source.Row // in a pseudo-random order, the same for the same rows
	Folds int

	knowledge *knowledge.Knowledge
	form      sdk.LabelForm
	folds     map[string]int // by id, for Items
	vectors   map[string][]float32
	same      bool // the rows' vectors equal the vectors of their texts as queries
	labels    map[string]*label
	rows      int // rows with a label
	most      int // rows that are held out at most
}

// label is a label of the knowledge.
type label struct {
	rows int       // number of rows
	sum  []float64 // sum of the rows' vectors; nil: not needed
}

// HoldOut holds out at most n rows, drawn at random from all labelled rows; the same knowledge
// gives the same draw. It excludes a row that occurs twice in the knowledge, because its copy would
// reveal the label. It also excludes the only row of a label, because nothing else represents that
// label. Set centroids if Prototypes will be called.
func HoldOut(ctx context.Context, k *knowledge.Knowledge, n int, centroids bool) (*HeldOut, error) {
	r := newHeldOut(k, n)
	chosen, err := r.draw(ctx)
	if err == nil {
		r.divide(chosen)
		if err = r.read(ctx, centroids); err == nil && r.same && len(r.Items) > 0 {
			r.same, err = r.compare(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hold rows out of knowledge %q: %w", k.Report.Name, err)
	}
	return r, nil
}

func newHeldOut(k *knowledge.Knowledge, n int) *HeldOut {
	return &HeldOut{knowledge: k, form: k.LabelForm(), folds: map[string]int{}, vectors: map[string][]float32{}, labels: map[string]*label{}, most: n}
}

// drawn is a candidate row.
type drawn struct {
	id, label string
	content   [16]byte // hash; zero: the store keeps none
	order     uint64   // random, by id
}

// draw counts the rows of each label, and returns the random rows to hold out. A smaller number draws a
// subset of the rows of a larger number.
func (r *HeldOut) draw(ctx context.Context) ([]drawn, error) {
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
		for _, one := range r.form.Split(e.Label) {
			if r.labels[one] == nil {
				r.labels[one] = &label{}
			}
			r.labels[one].rows++
		}
		r.rows++
		if _, description := r.knowledge.Weighed(e); !description { // a label's description is not an item
			all = append(all, d)
		}
	})
	all = slices.DeleteFunc(all, func(d drawn) bool { return times[d.content] > 1 || r.fewest(d.label) < 2 })
	slices.SortFunc(all, func(a, b drawn) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id)) })
	return all[:min(r.most, len(all))], err
}

// fewest returns the number of rows of a label or, for a set, of its rarest label.
func (r *HeldOut) fewest(label string) int {
	fewest := math.MaxInt
	for _, one := range r.form.Split(label) {
		fewest = min(fewest, r.labels[one].rows)
	}
	return fewest
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

// divide splits rows into folds, evenly for each label. It makes enough folds that each has at most
// the maxFolds-th part of the knowledge. If a label would have no row outside a fold, the label's
// last chosen row is dropped.
func (r *HeldOut) divide(chosen []drawn) {
	r.Folds = min(max(1, (maxFolds*len(chosen)+r.rows-1)/max(r.rows, 1)), maxFolds)
	byLabel := map[string]int{} // rows so far
	next := 0
	slices.SortStableFunc(chosen, func(a, b drawn) int { return cmp.Compare(a.label, b.label) })
	for _, d := range chosen {
		byLabel[d.label]++
		if in := (byLabel[d.label] + r.Folds - 1) / r.Folds; in >= r.fewest(d.label) {
			continue
		}
		r.folds[d.id] = next % r.Folds
		next++
	}
}

// read reads the chosen rows and, with centroids, the vectors.
func (r *HeldOut) read(ctx context.Context, centroids bool) error {
	r.same = centroids
	err := r.knowledge.Entries(ctx, sdk.Scan{Texts: true, Vectors: centroids}, func(e sdk.Entry) {
		if _, chosen := r.folds[e.ID]; chosen {
			r.keep(e)
			r.same = r.same && e.Context == "" // a context is embedded with the text
		}
		if !centroids {
			return
		}
		weight, _ := r.knowledge.Weighed(e)
		for _, one := range r.form.Split(e.Label) {
			l := r.labels[one]
			if l.sum == nil {
				l.sum = make([]float64, len(e.Vector))
			}
			for i, x := range e.Vector {
				l.sum[i] += weight * float64(x)
			}
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

const (
	compared = 3    // number of rows that show whether an embedder treats passages and queries differently
	rounding = 1e-5 // tolerated difference of a number in a vector
)

// compare reports whether the vectors of rows equal the vectors of their texts as queries, so that the texts
// need not be embedded again.
func (r *HeldOut) compare(ctx context.Context) (same bool, err error) {
	var texts []string
	for _, row := range r.Items[:min(compared, len(r.Items))] {
		texts = append(texts, row.Text)
	}
	queries, err := r.knowledge.Embed(ctx, texts)
	if errors.As(err, new(sdk.RowErrors)) {
		return false, nil
	}
	for i, query := range queries {
		for at, x := range r.vectors[r.Items[i].ID] {
			if math.Abs(float64(x-query[at])) > rounding {
				return false, err
			}
		}
	}
	return err == nil, err
}

// Query returns the vector of a row as a query; nil: the row has to be embedded.
func (r *HeldOut) Query(id string) []float32 {
	if !r.same {
		return nil
	}
	return r.vectors[id]
}

// keep stores a chosen row. It clones the vector, which is a part of its page.
func (r *HeldOut) keep(e sdk.Entry) {
	r.Items = append(r.Items, source.Row{ID: e.ID, Text: e.Text, Label: e.Label, Meta: e.Meta})
	r.vectors[e.ID] = slices.Clone(e.Vector)
}

// Of reports whether the rows are held out of this knowledge. For a nil receiver it is false.
func (r *HeldOut) Of(k *knowledge.Knowledge) bool { return r != nil && r.knowledge == k }

// Fold returns the fold of an item, from 0.
func (r *HeldOut) Fold(id string) int { return r.folds[id] }

// Without returns a voter's training rows without the rows in a fold.
func (r *HeldOut) Without(fold int, rows iter.Seq2[[]sdk.TrainingRow, error]) iter.Seq2[[]sdk.TrainingRow, error] {
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
