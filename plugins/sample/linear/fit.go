package linear

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/internal/hashed"
	"github.com/racflow/racflow/sdk"
)

// What training costs at most, whatever the time it takes.
const (
	evaluations = 40 // of the objective, for the final model
	folds       = 3
	triedRows   = 2000 // of cross-validation
	tried       = 10   // evaluations for each strength and fold; each begins where the one before it ended
)

// strengths are those that cross-validation chooses from: the sum of losses counts so
// much more than half the squared weights.
var strengths = []float64{10, 30, 100}

const usual = 30 // where there are too few rows to choose

// Fit implements sdk.Fitter.
func (v *voter) Fit(ctx context.Context, batches iter.Seq2[[]sdk.TrainingRow, error]) error {
	if v.dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	r := &rows{max: v.MaxRows, byLabel: map[string][]row{}}
	for batch, err := range batches {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		for i := range batch {
			if err := r.add(&batch[i]); err != nil {
				return err
			}
		}
	}
	m, err := v.learn(ctx, r)
	if err != nil {
		return err
	}
	if err := m.writeState(v.dir); err != nil {
		return err
	}
	v.model.Store(m)
	return nil
}

// learn fits a model to rows.
func (v *voter) learn(ctx context.Context, r *rows) (*model, error) {
	labels, all, err := r.sorted()
	if err != nil || len(labels) == 0 {
		return newModel(nil, 0, nil), err
	}
	x := &hashed.Extractor{Analyzer: v.analyzer}
	examples := make([]example, len(all))
	for i, row := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		label, _ := slices.BinarySearch(labels, row.label)
		examples[i] = example{vector: row.vector, inputs: row.inputs, features: hashText(x, row.text, v.Features), label: label}
	}
	fresh := func(from []example) *model { return newModel(labels, r.dimension, learnIDF(from, v.Features)) }
	c, held, err := choose(ctx, fresh, examples)
	if err != nil {
		return nil, err
	}
	m := fresh(examples)
	p := newProblem(m, m.weighAll(examples))
	p.c = c
	err = p.minimise(ctx, evaluations)
	m.scale = float32(held.scale(m, p.examples[:min(len(examples), triedRows)]))
	return m, err
}

func (m *model) weighAll(examples []example) []example {
	all := slices.Clone(examples)
	for i := range all {
		all[i].features = append(slices.Clip(all[i].inputs), m.weigh(all[i].features)...)
	}
	return all
}

// choose returns the smallest strength, the strongest penalty, whose errors on rows that
// were not learnt from are within one standard error of the fewest, and what its models
// say of those rows. The examples are in random order.
func choose(ctx context.Context, fresh func([]example) *model, examples []example) (float64, *heldOut, error) {
	examples = examples[:min(len(examples), triedRows)]
	if len(examples) < 10*folds {
		return usual, new(heldOut), nil
	}
	wrong, said := make([]float64, len(strengths)), make([]heldOut, len(strengths))
	for fold := range folds {
		var learnt, held []example
		for i, e := range examples {
			if i%folds == fold {
				held = append(held, e)
			} else {
				learnt = append(learnt, e)
			}
		}
		m := fresh(learnt)
		p, held := newProblem(m, m.weighAll(learnt)), m.weighAll(held)
		for i, c := range strengths {
			p.c = c
			if err := p.minimise(ctx, tried); err != nil {
				return 0, nil, err
			}
			wrong[i] += said[i].add(m, p.examples, held)
		}
	}
	fewest := slices.Min(wrong)
	within := fewest + math.Sqrt(fewest*(1-fewest/float64(len(examples))))
	chosen := slices.IndexFunc(wrong, func(errors float64) bool { return errors <= within })
	return strengths[chosen], &said[chosen], nil
}
