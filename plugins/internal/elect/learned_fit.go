package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// calibration makes a confidence of the probability of an answer: the log-odds times slope,
// plus offset (Platt, "Probabilistic outputs for support vector machines and comparisons
// to regularized likelihood methods", 1999).
type calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// uncalibrated leaves probabilities as they are.
var uncalibrated = calibration{Slope: 1}

// calibrationOf reads the argument.
func calibrationOf(given map[string]float64) (calibration, error) {
	c := uncalibrated
	for name, value := range given {
		switch {
		case name == "slope" && value >= 0:
			c.Slope = value
		case name == "slope":
			return c, &sdk.ArgumentError{Argument: "calibration", Err: errors.New("a slope below 0 makes the likeliest answers the least sure")}
		case name == "offset":
			c.Offset = value
		default:
			return c, &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("there is no %q; give slope and offset", name)}
		}
	}
	return c, nil
}

func (c calibration) confidence(probability float64) float64 {
	return sigmoid(c.Slope*logOdds(probability) + c.Offset)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// surest bounds log-odds: no number of rows tells a probability from 1 that is closer.
const surest = 12

func logOdds(probability float64) float64 {
	return max(-surest, min(surest, math.Log(probability/(1-probability))))
}

// calibrated is fitted to decisions by Newton's method, with a penalty of half the squared
// distance from uncalibrated: a row's worth.
func (t trial) calibrated() calibration {
	c := uncalibrated
	for range steps {
		g, h := [2]float64{c.Slope - 1, c.Offset}, [3]float64{1, 0, 1}
		for _, d := range t {
			if math.IsInf(d.odds, 0) {
				continue // nothing was answered
			}
			p := sigmoid(c.Slope*d.odds + c.Offset)
			error, v := p, p*(1-p)
			if d.right {
				error--
			}
			g[0], g[1] = g[0]+error*d.odds, g[1]+error
			h[0], h[1], h[2] = h[0]+v*d.odds*d.odds, h[1]+v*d.odds, h[2]+v
		}
		det := h[0]*h[2] - h[1]*h[1]
		by := [2]float64{(h[2]*g[0] - h[1]*g[1]) / det, (h[0]*g[1] - h[1]*g[0]) / det}
		size := min(1, 1/max(math.Abs(by[0]), math.Abs(by[1]))) // far from the end, Newton's steps are too long
		c.Slope, c.Offset = max(c.Slope-size*by[0], 0), c.Offset-size*by[1]
		if math.Abs(by[0])+math.Abs(by[1]) < 1e-9 {
			break
		}
	}
	return calibration{rounded(c.Slope), rounded(c.Offset)}
}

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

const (
	folds   = 5
	few     = 20    // rows with which nothing is compared
	harm    = 0.005 // of the rows: as much worse as the best voter an election may be ...
	certain = 1.645 // ... with so many standard errors of certainty: 95 %
)

// trial is what an election decides on rows from whose votes it has not learnt.
type trial []point

// point is a decision.
type point struct {
	odds  float64 // that it is right: its log-odds by the election
	right bool
}

// try holds elections on all rows, each with weights that were fitted without it: without
// a leader, and with one.
func (p *problem) try(ctx context.Context, leader int, weights []float64) (without, with trial, err error) {
	without, with = make(trial, len(p.rows)), make(trial, len(p.rows))
	for fold := range folds {
		w := slices.Clone(weights) // close to what it will be
		if err := p.minimise(ctx, w, func(i int) bool { return i%folds != fold }); err != nil {
			return nil, nil, err
		}
		for i := fold; i < len(p.rows); i += folds {
			without[i], with[i] = p.decide(i, w, -1), p.decide(i, w, leader)
		}
	}
	return without, with, nil
}

// decide holds an election on a row.
func (p *problem) decide(i int, weights []float64, leader int) point {
	r := &p.rows[i]
	p.scores = r.votes.score(p.scores, weights)
	best := r.votes.winner(p.scores, leader)
	if best < 0 {
		return point{odds: math.Inf(-1)}
	}
	r.votes.softmax(p.scores, p.labels)
	return point{logOdds(p.scores[best]), best == r.truth}
}

// against compares the decisions with a voter alone: the share of rows by which it is right
// on more, and the standard error of that.
func (t trial) against(alone []bool) (gain, deviation float64) {
	sum, squares, n := 0.0, 0.0, float64(len(t))
	for i, d := range t {
		switch {
		case d.right && !alone[i]:
			sum, squares = sum+1, squares+1
		case alone[i] && !d.right:
			sum, squares = sum-1, squares+1
		}
	}
	gain = sum / n
	return gain, math.Sqrt((squares/n - gain*gain) / n)
}

// leads reports whether the voter that is right on most rows leads. On rows that were
// labelled to learn from, it does unless the election does certainly no harm; on rows held
// out of the knowledge only if that certainly does harm.
func (t trial) leads(alone []bool, heldOut bool) bool {
	gain, deviation := t.against(alone)
	if heldOut {
		return gain+certain*deviation < 0
	}
	return gain-certain*deviation < -harm
}

// alone tells for each row whether a voter alone is right, and on how many it is.
func (p *problem) alone(voter int) (right []bool, n int) {
	right = make([]bool, len(p.rows))
	for i, r := range p.rows {
		best, most := -1, 0.0
		for _, x := range r.votes.all {
			if int(x.voter) == voter && x.strength > most+tie {
				best, most = int(x.label), x.strength
			}
		}
		if best >= 0 && best == r.truth {
			right[i] = true
			n++
		}
	}
	return right, n
}

const (
	ridge      = 0.1 // of the squared distance from prior
	steps      = 50  // of Newton's method at most; it takes about ten
	shortest   = 1e-6
	flat       = 1e-6 // the expected decrease with which a step is the last one
	sufficient = 1e-4 // share of the expected decrease that a step has to bring (Armijo)
	negligible = 1e-9 // the probability that is taken for 0 in a gradient
)

// row is what is learnt from a labelled row.
type row struct {
	id, label string
	votes     votes // by label
	truth     int   // its label, among those of the votes; -1: nobody voted for it
}

// problem is what weights are fitted to: rows, with the number of all labels.
type problem struct {
	rows   []row
	labels int
	voters int

	gradient []float64
	hessian  [][]float64
	scores   []float64
	mean     []float64 // by voter: of its strengths under the model's probabilities
	touched  []int32   // voters with votes on a row
}

func newProblem(rows []row, labels, voters int) *problem {
	p := &problem{rows: rows, labels: labels, voters: voters, gradient: make([]float64, voters), hessian: make([][]float64, voters), mean: make([]float64, voters)}
	for i := range p.hessian {
		p.hessian[i] = make([]float64, voters)
	}
	return p
}

// loss is the negative log-likelihood of the rows that keep keeps, with the penalty. It
// computes its gradient and Hessian, too.
func (p *problem) loss(weights []float64, keep func(int) bool) float64 {
	value := 0.0
	for i := range p.hessian {
		clear(p.hessian[i])
	}
	for i, w := range weights {
		value += ridge / 2 * (w - prior) * (w - prior)
		p.gradient[i], p.hessian[i][i] = ridge*(w-prior), ridge
	}
	for i := range p.rows {
		if !keep(i) {
			continue
		}
		r := &p.rows[i]
		p.scores = r.votes.score(p.scores, weights)
		if r.truth >= 0 {
			value -= p.scores[r.truth]
		}
		value += r.votes.softmax(p.scores, p.labels)
		p.derive(r)
	}
	return value
}

// derive adds a row's part to gradient and Hessian. The scores are its probabilities.
func (p *problem) derive(r *row) {
	all := r.votes.all
	p.touched = p.touched[:0]
	for lo, hi := 0, 0; lo < len(all); lo = hi {
		label := int(all[lo].label)
		for hi < len(all) && int(all[hi].label) == label {
			hi++
		}
		probability := p.scores[label]
		if probability < negligible && label != r.truth {
			continue
		}
		for i, x := range all[lo:hi] {
			if p.mean[x.voter] == 0 {
				p.touched = append(p.touched, x.voter)
			}
			pull := probability * x.strength
			p.mean[x.voter] += pull
			if label == r.truth {
				p.gradient[x.voter] -= x.strength
			}
			for _, y := range all[lo:][:i+1] {
				p.hessian[x.voter][y.voter] += pull * y.strength
			}
		}
	}
	for _, a := range p.touched {
		p.gradient[a] += p.mean[a]
		for _, b := range p.touched {
			if b <= a {
				p.hessian[a][b] -= p.mean[a] * p.mean[b]
			}
		}
	}
	for _, a := range p.touched {
		p.mean[a] = 0
	}
}

// minimise improves weights, which are never negative, by Newton's method.
func (p *problem) minimise(ctx context.Context, weights []float64, keep func(int) bool) error {
	next, by := make([]float64, len(weights)), make([]float64, len(weights))
	value := p.loss(weights, keep)
	for range steps {
		p.step(weights, by)
		slope := 0.0
		for i := range by {
			slope += p.gradient[i] * by[i]
		}
		if slope > -flat { // so close that this step arrives
			for i := range weights {
				weights[i] = max(weights[i]+by[i], 0)
			}
			return nil
		}
		better := false
		for size := 1.0; !better; size /= 2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if size < shortest {
				return nil // as good as numbers of 64 bits can be
			}
			for i, w := range weights {
				next[i] = max(w+size*by[i], 0)
			}
			if now := p.loss(next, keep); now <= value+sufficient*size*slope {
				value, better = now, true
			}
		}
		copy(weights, next)
	}
	return nil
}

// step sets by to the step with which the quadratic approximation is smallest, by
// coordinate descent, a voter at a time.
func (p *problem) step(weights, by []float64) {
	clear(by)
	for range 1000 {
		moved := 0.0
		for i := range by {
			g := p.gradient[i]
			for j := range by {
				g += p.hessian[max(i, j)][min(i, j)] * by[j]
			}
			to := max(by[i]-g/p.hessian[i][i], -weights[i])
			moved = max(moved, math.Abs(to-by[i]))
			by[i] = to
		}
		if moved < 1e-9 {
			return
		}
	}
}
