package learned

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// fitter is an election that learns its model.
type fitter struct {
	*election
	dir string // for what is learnt; empty: there is none
}

// Fit implements sdk.Fitter.
func (f *fitter) Fit(ctx context.Context, batches iter.Seq2[[]sdk.TrainingRow, error]) error {
	if f.dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	l := &lesson{labels: map[string]struct{}{}}
	for batch, err := range batches {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		for i := range batch {
			l.add(&batch[i])
		}
	}
	m, err := l.learn(ctx)
	if err != nil {
		return err
	}
	if err := m.writeState(f.dir); err != nil {
		return err
	}
	f.model.Store(m)
	return nil
}

// Resolved implements sdk.Resolver: all that was learnt.
func (f *fitter) Resolved() map[string]any {
	m := f.model.Load()
	if len(m.Weights) == 0 {
		return nil
	}
	values := map[string]any{
		"weights":     m.Weights,
		"calibration": map[string]float64{"slope": m.Calibration.Slope, "offset": m.Calibration.Offset},
	}
	if m.Leader != "" {
		values["leader"] = m.Leader
	}
	return values
}

// lesson collects rows.
type lesson struct {
	reader reader
	rows   []row
	labels map[string]struct{}

	heldOut bool // rows were held out of the knowledge
}

// add takes a row, unless it has no label.
func (l *lesson) add(t *sdk.TrainingRow) {
	if t.Label == "" {
		return
	}
	l.heldOut = l.heldOut || t.HeldOut
	v := l.reader.read(t.Samples, nil)
	for _, label := range append(l.reader.labels, t.Label) {
		if _, known := l.labels[label]; !known && label != "" {
			l.labels[strings.Clone(label)] = struct{}{}
		}
	}
	truth := slices.Index(l.reader.labels, t.Label)
	v.all = slices.Clone(v.all)
	l.rows = append(l.rows, row{id: strings.Clone(t.ID), label: strings.Clone(t.Label), votes: v, truth: truth})
}

// learn fits a model. Rows and voters are sorted before, so that their order makes no
// difference.
func (l *lesson) learn(ctx context.Context) (*model, error) {
	slices.SortStableFunc(l.rows, func(a, b row) int { return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.label, b.label)) })
	voters := slices.Sorted(slices.Values(l.reader.voters))
	number := make([]int32, len(voters))
	for i, name := range l.reader.voters {
		number[i] = int32(slices.Index(voters, name))
	}
	for _, r := range l.rows {
		for i := range r.votes.all {
			r.votes.all[i].voter = number[r.votes.all[i].voter]
		}
		slices.SortFunc(r.votes.all, func(a, b vote) int { return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.voter, b.voter)) })
	}
	p := newProblem(l.rows, len(l.labels), len(voters))
	weights := make([]float64, len(voters))
	for i := range weights {
		weights[i] = prior
	}
	if err := p.minimise(ctx, weights, func(int) bool { return true }); err != nil {
		return nil, err
	}
	m := &model{Rows: len(l.rows), Labels: len(l.labels), Weights: map[string]float64{}, Alone: map[string]float64{}, Calibration: uncalibrated}
	best, most, alone := -1, -1, []bool(nil)
	for i, name := range voters {
		right, n := p.alone(i)
		if n > most {
			best, most, alone = i, n, right
		}
		m.Weights[name] = rounded(weights[i])
		m.Alone[name] = rounded(float64(n) / float64(len(l.rows)))
	}
	if len(l.rows) < few || best < 0 {
		return m, nil
	}
	without, with, err := p.try(ctx, best, weights)
	if err != nil {
		return nil, err
	}
	m.Calibration = without.calibrated()
	if without.leads(alone, l.heldOut) {
		m.Leader, m.Calibration = voters[best], with.calibrated()
		m.Weights[m.Leader] = max(m.Weights[m.Leader], smallest)
	}
	return m, nil
}

// smallest is the least weight of a leader, which one gets that is worse than chance: what
// it is right on is more than nothing.
const smallest = 1e-4

// rounded leaves four digits, which is more than rows can tell, and which no processor
// computes differently.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }
