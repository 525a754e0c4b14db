package elect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// fitter is an election that has yet to learn its model.
type fitter struct {
	*election
	dir string // folder for the learned model; empty: there is none
	log *slog.Logger
}

// Fit implements sdk.Fitter.
func (f *fitter) Fit(ctx context.Context, batches iter.Seq2[[]sdk.TrainingRow, error]) error {
	if f.dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	l := &lesson{form: f.form, reader: reader{sets: f.form.Many}, precision: f.precision, raiseCost: f.raiseCost, labels: map[string]struct{}{}, alone: map[string]bool{}}
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
	if m.Sets != nil && m.Sets.Threshold == 1 && f.log != nil {
		f.log.Warn("no threshold keeps the precision on the rows, so that no label is answered: ask for less, or give more rows", "precision", f.precision, "rows", m.Rows)
	}
	if err := m.writeState(f.dir); err != nil {
		return err
	}
	f.use(m)
	return nil
}

// Resolved implements sdk.Resolver. It returns everything that was learned.
func (f *fitter) Resolved() map[string]any {
	m := f.model.Load()
	if len(m.Weights) == 0 && (m.Sets == nil || len(m.Sets.Weights) == 0) {
		return nil
	}
	if m.Sets != nil {
		return map[string]any{"weights": m.Sets.Weights, "calibration": m.Sets.argument()}
	}
	values := map[string]any{"weights": m.Weights, "calibration": m.argument()}
	if m.OutOfScope != nil {
		values["unknown"] = m.OutOfScope.argument()
	}
	return values
}

// lesson collects the rows to learn from.
type lesson struct {
	form      sdk.LabelForm
	precision float64
	raiseCost float64
	sets      []setRow

	reader  reader
	rows    []row
	unknown []sdk.TrainingRow // that belong to no label
	labels  map[string]struct{}
	alone   map[string]bool // labels without examples; their rows come first
}

// add takes a row.
func (l *lesson) add(t *sdk.TrainingRow) {
	if t.Label == "" {
		l.unknown = append(l.unknown, *t)
		return
	}
	if t.ID == "" && len(t.Samples) == 0 {
		l.alone[strings.Clone(t.Label)] = true
		return
	}
	v := l.reader.read(t.Samples, nil)
	for _, label := range append(l.form.Split(t.Label), l.reader.labels...) {
		if _, known := l.labels[label]; !known && label != "" {
			l.labels[strings.Clone(label)] = struct{}{}
		}
	}
	if l.form.Many {
		l.addSet(t)
		return
	}
	truth := slices.Index(l.reader.labels, t.Label)
	var alone []int32
	for i, label := range l.reader.labels {
		if l.alone[label] {
			alone = append(alone, int32(i))
		}
	}
	v.all = slices.Clone(v.all)
	var names []string
	if l.form.Levels != "" {
		for _, label := range l.reader.labels {
			names = append(names, strings.Clone(label))
		}
	}
	l.rows = append(l.rows, row{names: names, id: strings.Clone(t.ID), label: strings.Clone(t.Label), heldOut: t.HeldOut, votes: v, truth: truth, alone: alone, distances: distances(t.Samples)})
}

// learn fits a model. It first sorts rows and voters, so that their order makes no difference.
func (l *lesson) learn(ctx context.Context) (*model, error) {
	if l.form.Many {
		slices.SortStableFunc(l.sets, func(a, b setRow) int { return strings.Compare(a.id, b.id) })
		s, err := learnSets(ctx, l.sets, l.reader.voters, l.precision)
		return &model{Rows: len(l.sets), Labels: len(l.labels), Sets: s}, err
	}
	slices.SortStableFunc(l.rows, func(a, b row) int { return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.label, b.label)) })
	slices.SortStableFunc(l.unknown, func(a, b sdk.TrainingRow) int { return strings.Compare(a.ID, b.ID) })
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
	p.form, p.raiseCost = l.form, l.raiseCost
	m := &model{Rows: len(l.rows), Labels: len(l.labels), Alone: map[string]float64{}, Most: l.ofOne()}
	for i, name := range voters {
		m.Alone[name] = rounded(p.accuracyOf(i))
	}
	decided, err := m.learn(ctx, p, voters)
	if err != nil || decided == nil {
		return m, err
	}
	known, unknown := m.prepare().sights(p, voters, decided), []sight(nil)
	for _, t := range l.unknown {
		if v := l.reader.elect(t.Samples, m, m.Labels, l.alone); v.Answer != "" {
			unknown = append(unknown, sight{point{odds: logOdds(v.Confidence)}, distances(t.Samples)})
		}
	}
	m.OutOfScope = fitDetector(known, unknown)
	return m, nil
}

// rounded keeps four decimals. That is more precise than rows allow, and the same on every processor.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// accuracyOf returns the share of the rows on which a voter alone is right.
func (p *problem) accuracyOf(voter int) float64 {
	right := 0
	for _, r := range p.rows {
		best, most := -1, 0.0
		for _, x := range r.votes.all {
			if int(x.voter) == voter && x.strength > most+tie {
				best, most = int(x.label), x.strength
			}
		}
		if best >= 0 && best == r.truth {
			right++
		}
	}
	return float64(right) / float64(len(p.rows))
}

const (
	tight      = 0.5   // penalty of the squared distance from the prior, of voters that give distributions
	loose      = 0.125 // of voters with single answers, which differ more
	steps      = 50    // of Newton's method at most; it takes about ten
	shortest   = 1e-6
	flat       = 1e-6 // stop at an expected decrease below this
	sufficient = 1e-4 // share of the expected decrease that a step has to bring (Armijo)
	negligible = 1e-9 // a gradient takes smaller probabilities for 0
)

// row is the part of a labelled row from which the election learns.
type row struct {
	id, label string
	heldOut   bool               // the row is one of the knowledge
	votes     votes              // by label
	truth     int                // the position of its label in the votes; -1: nobody voted for it
	alone     []int32            // labels with votes but without an example
	distances map[string]float64 // by voter
	names     []string           // of the labels, where they have levels
}

// problem holds the rows to which weights are fitted, and the number of all labels.
type problem struct {
	rows   []row
	form   sdk.LabelForm
	levels []trial // where labels have levels: the decisions at each
	labels int
	shares []bool    // by voter: it gives distributions
	prior  []float64 // by voter: the weight before learning
	raise  float64   // added to the scores of labels without examples

	raiseCost float64 // the share of right decisions that the raise may cost

	gradient []float64
	hessian  [][]float64
	scores   []float64
	mean     []float64 // by voter: of its strengths under the model's probabilities
	touched  []int32   // voters with votes on a row
}

func newProblem(rows []row, labels, voters int) *problem {
	p := &problem{
		rows: rows, labels: labels, shares: make([]bool, voters), prior: make([]float64, voters),
		gradient: make([]float64, voters), hessian: make([][]float64, voters), mean: make([]float64, voters),
	}
	for i := range p.hessian {
		p.hessian[i] = make([]float64, voters)
	}
	for _, r := range rows {
		for _, x := range r.votes.all {
			p.shares[x.voter] = p.shares[x.voter] || x.distribution
		}
	}
	kinds := map[bool]int{}
	for _, kind := range p.shares {
		kinds[kind]++
	}
	for i, kind := range p.shares {
		if p.prior[i] = prior(kinds[kind]); !kind {
			p.prior[i] = unmeasured(kinds[kind], labels) // mostly language models, which answered few of the rows
		}
	}
	return p
}

// loss is the negative log-likelihood of the rows for which keep is true, plus the penalty. It also computes gradient
// and Hessian.
func (p *problem) loss(weights []float64, keep func(int) bool) float64 {
	value := 0.0
	for i := range p.hessian {
		clear(p.hessian[i])
	}
	for i, w := range weights {
		off := w - p.prior[i]
		ridge := loose
		if p.shares[i] {
			ridge = tight
		}
		value += ridge / 2 * off * off
		p.gradient[i], p.hessian[i][i] = ridge*off, ridge
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

// derive adds a row's part to gradient and Hessian. p.scores holds the row's probabilities.
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

// minimise improves weights by Newton's method. They never become negative.
func (p *problem) minimise(ctx context.Context, weights []float64, keep func(int) bool) error {
	next, by := make([]float64, len(weights)), make([]float64, len(weights))
	value := p.loss(weights, keep)
	for range steps {
		p.step(weights, by)
		slope := 0.0
		for i := range by {
			slope += p.gradient[i] * by[i]
		}
		if slope > -flat { // this step reaches the minimum
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
				return nil // the limit of 64-bit floats
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

// step sets by to the step that minimises the quadratic approximation, by coordinate descent over the voters.
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
