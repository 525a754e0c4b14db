package sample

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/embed"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// heldOut is what the models of cross-validation say of the examples that each of them
// has not learnt from.
type heldOut struct {
	scores [][]float32
	truth  []int
	spread []float64 // of the models, on what they have learnt from
}

// add notes the scores of a model, and returns how many examples it gets wrong.
func (h *heldOut) add(m *model, learnt, held []example) (wrong float64) {
	if m.many {
		m.eachScore(held, func(e example, scores []float32) {
			m.probabilities(scores, 1)
			wrong += lossOfSet(scores, e.labels)
		})
		return wrong
	}
	m.eachScore(held, func(e example, scores []float32) {
		h.scores, h.truth = append(h.scores, slices.Clone(scores)), append(h.truth, e.labels[0])
		if slices.Index(scores, slices.Max(scores)) != e.labels[0] {
			wrong++
		}
	})
	h.spread = append(h.spread, m.spread(learnt))
	return wrong
}

// eachScore calls f with the scores of each example, which it may change.
func (m *model) eachScore(examples []example, f func(example, []float32)) {
	s := newScratch()
	for part := range slices.Chunk(examples, rowBlock) {
		scores := s.row(len(part) * m.width)
		m.score(scores, part, s)
		for i, e := range part {
			f(e, scores[i*m.width:][:len(m.labels)])
		}
	}
}

// spread is the standard deviation of the scores of an example, over the labels and as
// the root mean square over the examples.
func (m *model) spread(examples []example) float64 {
	sum := 0.0
	m.eachScore(examples, func(_ example, scores []float32) {
		mean, squares, n := 0.0, 0.0, float64(len(scores))
		for _, x := range scores {
			mean += float64(x) / n
			squares += float64(x) * float64(x) / n
		}
		sum += max(squares-mean*mean, 0)
	})
	return math.Sqrt(sum / float64(len(examples)))
}

// scale returns by what the scores of the final model are to be multiplied, so that its
// probabilities say how often it is right: see the package's documentation.
func (h *heldOut) scale(final *model, learnt []example) float64 {
	spread := final.spread(learnt)
	if len(h.scores) == 0 || spread == 0 {
		return 1
	}
	before := 0.0
	for _, s := range h.spread {
		before += s / float64(len(h.spread))
	}
	return h.likeliest() * math.Sqrt(before/spread)
}

// extreme is the largest factor, and the inverse of the smallest one.
const extreme = 16

// likeliest returns the factor that makes the true labels likeliest, by bisection of the
// slope, which rises.
func (h *heldOut) likeliest() float64 {
	low, high := -math.Log(extreme), math.Log(extreme)
	for high-low > 1e-3 {
		if middle := (low + high) / 2; h.slope(math.Exp(middle)) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// slope is the derivative of the negative log-likelihood by the factor. A label counts as
// the true one by 1 - 1/(n+2), as with Platt, so that n right answers of n do not make
// the next one certain.
func (h *heldOut) slope(factor float64) float64 {
	sum, doubt := 0.0, 1/float64(len(h.scores)+2)
	var p []float32
	for i, scores := range h.scores {
		p = append(p[:0], scores...)
		simd.Best().Softmax(p, float32(factor))
		all, others := 0.0, float64(max(len(scores)-1, 1))
		for _, x := range scores {
			all += float64(x)
		}
		truth := float64(scores[h.truth[i]])
		sum += float64(simd.Dot(p, scores)) - (1-doubt)*truth - doubt*(all-truth)/others
	}
	return sum
}

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

const linearUsual = 30 // where there are too few rows to choose

// Fit implements sdk.Fitter.
func (v *linearVoter) Fit(ctx context.Context, batches iter.Seq2[[]sdk.TrainingRow, error]) error {
	if v.dir == "" {
		return errors.New("there is no folder for what is learnt")
	}
	r := &rows{max: v.MaxRows, form: v.form, byLabel: map[string][]linearRow{}}
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
func (v *linearVoter) learn(ctx context.Context, r *rows) (*model, error) {
	labels, all, err := r.sorted()
	if err != nil || len(labels) == 0 {
		return newModel(nil, 0, nil), err
	}
	x := &embed.HashedFeatures{Analyzer: v.analyzer}
	examples := make([]example, len(all))
	for i, row := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		examples[i] = example{vector: row.vector, inputs: row.inputs, features: hashText(x, row.text, v.Features)}
		for _, label := range v.form.Split(row.label) {
			at, _ := slices.BinarySearch(labels, label)
			examples[i].labels = append(examples[i].labels, at)
		}
	}
	fresh := func(labels []string) func([]example) *model {
		return func(from []example) *model {
			m := newModel(labels, r.dimension, learnIDF(from, v.Features))
			m.many = v.form.Many
			return m
		}
	}
	tried, some := withoutDescriptions(labels, all, examples)
	c, held, err := choose(ctx, fresh(some), tried)
	if err != nil {
		return nil, err
	}
	m := fresh(labels)(examples)
	p := newProblem(m, m.weighAll(examples))
	p.c = c
	err = p.minimise(ctx, evaluations)
	if m.many {
		return m, err
	}
	m.scale = float32(held.scale(m, p.examples[:min(len(examples), triedRows)]))
	return m, err
}

// withoutDescriptions returns the examples that are no descriptions, and their labels: what a label means
// is not asked, so that it does not count in cross-validation.
func withoutDescriptions(labels []string, all []linearRow, examples []example) ([]example, []string) {
	if !slices.ContainsFunc(all, func(row linearRow) bool { return row.description }) {
		return examples, labels
	}
	var rows []example
	var some []string
	for i, e := range examples {
		if !all[i].description {
			rows = append(rows, e)
			for _, label := range e.labels {
				some = append(some, labels[label])
			}
		}
	}
	slices.Sort(some)
	some = slices.Compact(some)
	for i := range rows {
		rows[i].labels = slices.Clone(rows[i].labels)
		for j, label := range rows[i].labels {
			rows[i].labels[j], _ = slices.BinarySearch(some, labels[label])
		}
	}
	return rows, some
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
		return linearUsual, new(heldOut), nil
	}
	wrong, said, many := make([]float64, len(strengths)), make([]heldOut, len(strengths)), false
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
		many = m.many
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
	if many { // these are losses, of which no standard error is known
		return strengths[slices.Index(wrong, fewest)], &said[0], nil
	}
	within := fewest + math.Sqrt(fewest*(1-fewest/float64(len(examples))))
	chosen := slices.IndexFunc(wrong, func(errors float64) bool { return errors <= within })
	return strengths[chosen], &said[chosen], nil
}

const (
	remembered = 5    // steps from which L-BFGS estimates the curvature
	sufficient = 1e-4 // share of the expected decrease that a step has to bring (Armijo)
	halvings   = 10   // of a step
	flat       = 1e-5 // the gradient's length at which there is nothing left to gain
)

// step is one that was taken, with the change of the gradient.
type step struct {
	s, y []float32
	rho  float64 // 1 / s·y
}

// minimise improves the model's weights by L-BFGS, with at most so many evaluations.
func (p *problem) minimise(ctx context.Context, evaluations int) error {
	w := p.weights
	g, direction := make([]float32, len(w)), make([]float32, len(w))
	next, nextG := make([]float32, len(w)), make([]float32, len(w))
	var steps []step
	value := p.evaluate(g)
	for evaluations--; evaluations > 0; {
		length := math.Sqrt(p.dot(g, g))
		if length < flat {
			break
		}
		copy(direction, g)
		p.precondition(direction, steps)
		slope, size := -p.dot(direction, g), 1.0
		if slope >= 0 { // rounding has spoilt the estimate
			steps = nil
			copy(direction, g)
			slope = -length * length
		}
		if len(steps) == 0 {
			size = 1 / length
		}
		found, nextValue := false, 0.0
		for range halvings {
			if err := ctx.Err(); err != nil {
				return err
			}
			copy(next, w)
			p.add(next, -size, direction)
			p.weights = next
			nextValue = p.evaluate(nextG)
			evaluations--
			if found = nextValue <= value+sufficient*size*slope; found || evaluations <= 0 {
				break
			}
			size /= 2
		}
		p.weights = w
		if !found {
			break
		}
		steps = p.remember(steps, w, next, g, nextG)
		copy(w, next)
		copy(g, nextG)
		value = nextValue
	}
	return nil
}

// remember adds the step from w to next, in the place of the oldest one where there are
// enough.
func (p *problem) remember(steps []step, w, next, g, nextG []float32) []step {
	var last step
	if len(steps) == remembered {
		last = steps[0]
		steps = append(steps[:0:0], steps[1:]...)
	} else {
		last = step{s: make([]float32, len(w)), y: make([]float32, len(w))}
	}
	copy(last.s, next)
	p.add(last.s, -1, w)
	copy(last.y, nextG)
	p.add(last.y, -1, g)
	product := p.dot(last.s, last.y)
	if product <= 0 {
		return steps
	}
	last.rho = 1 / product
	return append(steps, last)
}

// precondition multiplies d by the estimate of the inverse Hessian: Nocedal's two loops.
func (p *problem) precondition(d []float32, steps []step) {
	if len(steps) == 0 {
		return
	}
	alpha := make([]float64, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		alpha[i] = steps[i].rho * p.dot(steps[i].s, d)
		p.add(d, -alpha[i], steps[i].y)
	}
	last := steps[len(steps)-1]
	scale := 1 / (last.rho * p.dot(last.y, last.y))
	p.add(d, scale-1, d)
	for i := range steps {
		beta := steps[i].rho * p.dot(steps[i].y, d)
		p.add(d, alpha[i]-beta, steps[i].s)
	}
}

// model is a linear layer: scores = Σ x[i]·weights[i].
type model struct {
	labels    []string // sorted
	dimension int      // of the vectors
	vocabulary
	width int // of a row of weights: the labels, rounded up for the processor
	// weights has a row for each dimension of the vectors, one for the constant
	// input, and one for each bucket that is used.
	weights []float32
	scale   float32 // of the scores, once the weights are learnt
	many    bool    // a label's score stands against all others, not against another label's
}

// width is the length of a row of weights for that many labels.
func width(labels int) int { return (labels + simd.PanelCols - 1) / simd.PanelCols * simd.PanelCols }

func newModel(labels []string, dimension int, idf []float32) *model {
	m := &model{labels: labels, dimension: dimension, width: width(len(labels)), scale: 1}
	m.vocabulary = newVocabulary(idf, m.dense())
	m.weights = make([]float32, m.inputs()*m.width)
	return m
}

// dense is the number of inputs that every row has: the vector's, and the constant 1.
func (m *model) dense() int  { return m.dimension + 1 }
func (m *model) inputs() int { return m.dense() + m.used }

// example is a row or item as the model sees it.
type example struct {
	vector   []float32 // nil: inputs stand for it
	inputs   []feature // of the vector, before features are weighed; then they are among those
	features []feature
	labels   []int // one, or those of a set; none: of an item
}

// probabilities makes probabilities of scores.
func (m *model) probabilities(scores []float32, scale float32) {
	if !m.many {
		simd.Best().Softmax(scores, scale)
		return
	}
	for i, x := range scores {
		scores[i] = float32(sigmoid(scale * x))
	}
}

func sigmoid(x float32) float64 { return 1 / (1 + math.Exp(-float64(x))) }

// scratch is memory for products. One goroutine at a time may use it.
type scratch struct {
	matrix    *simd.Matrix
	simd      simd.Scratch
	inputs, r []float32
}

func newScratch() *scratch { return &scratch{matrix: simd.Best().NewMatrix()} }

func floats(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}

// linearRow returns memory for a row.
func (s *scratch) row(width int) []float32 { return floats(&s.r, width) }

// score sets dst to the scores of examples, a row of m.width each.
func (m *model) score(dst []float32, examples []example, s *scratch) {
	if dense := m.dense(); examples[0].vector == nil {
		clear(dst)
	} else {
		x := floats(&s.inputs, len(examples)*dense)
		for i, e := range examples {
			to := x[i*dense:][:dense]
			copy(to, e.vector)
			to[m.dimension] = 1
		}
		s.matrix.PackCols(simd.NewView(m.weights, dense, m.width)).
			Mul(simd.NewView(dst, len(examples), m.width), simd.NewView(x, len(examples), dense), &s.simd)
	}
	weights := simd.NewView(m.weights, m.inputs(), m.width)
	for i, e := range examples {
		simd.Best().AddRows(dst[i*m.width:][:m.width], weights, e.features)
	}
}

// best returns the indices of the n greatest values, greatest first.
func best(values []float32, n int) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order[:min(n, len(order))]
}

const (
	rowBlock   = 16      // rows that a goroutine takes at a time
	inputBlock = 32      // inputs
	floatBlock = 1 << 15 // floats of a vector of weights
	negligible = 1e-7    // the probability that is taken for 0
)

// problem is what training minimises: the mean negative log-likelihood of the examples
// and the squares of the weights, divided by 2·c·examples. Each number is computed by one
// goroutine in a fixed order, so that how many there are makes no difference.
type problem struct {
	*model
	examples []example
	c        float64     // as in scikit-learn
	residual []float32   // a row for each example: probabilities less the truth
	losses   []float64   // of the examples
	first    int         // input that not every example has
	having   [][]feature // by input from first on: the examples that have it
	memory   sync.Pool   // of *scratch
}

func newProblem(m *model, examples []example) *problem {
	p := &problem{
		model: m, examples: examples, residual: make([]float32, len(examples)*m.width),
		losses: make([]float64, len(examples)), first: m.dense(),
		memory: sync.Pool{New: func() any { return newScratch() }},
	}
	if len(examples) > 0 && examples[0].vector == nil {
		p.first = 0
	}
	counts := make([]int, m.inputs()-p.first)
	for _, e := range examples {
		for _, f := range e.features {
			counts[int(f.Row)-p.first]++
		}
	}
	p.having = make([][]feature, len(counts))
	for i, n := range counts {
		p.having[i] = make([]feature, 0, n)
	}
	for i, e := range examples {
		for _, f := range e.features {
			at := int(f.Row) - p.first
			p.having[at] = append(p.having[at], feature{Row: int32(i), Factor: f.Factor})
		}
	}
	return p
}

// evaluate returns the value at the model's weights, and sets g to the gradient.
func (p *problem) evaluate(g []float32) float64 {
	p.blocks(len(p.examples), rowBlock, p.predict)
	p.blocks(p.first, inputBlock, func(lo, hi int, s *scratch) { p.slopeDense(g, lo, hi, s) })
	residual := simd.NewView(p.residual, len(p.examples), p.width)
	p.blocks(len(p.having), inputBlock, func(lo, hi int, _ *scratch) {
		for i := lo; i < hi; i++ {
			to := g[(p.first+i)*p.width:][:p.width]
			clear(to)
			simd.Best().AddRows(to, residual, p.having[i])
		}
	})
	n := float64(len(p.examples))
	ridge := 1 / (p.c * n)
	p.each(len(g), func(lo, hi int) {
		for i, w := range p.weights[lo:hi] {
			g[lo+i] = float32(g[lo+i]*float32(1/n)) + float32(w*float32(ridge)) // not fused
		}
	})
	value := 0.0
	for _, l := range p.losses {
		value += l
	}
	return value/n + ridge/2*p.dot(p.weights, p.weights)
}

// predict computes the losses and residuals of examples.
func (p *problem) predict(lo, hi int, s *scratch) {
	p.score(p.residual[lo*p.width:hi*p.width], p.examples[lo:hi], s)
	for i := lo; i < hi; i++ {
		row, labels := p.residual[i*p.width:][:p.width], p.examples[i].labels
		p.model.probabilities(row[:len(p.labels)], 1)
		if p.many {
			p.losses[i] = lossOfSet(row[:len(p.labels)], labels)
		} else {
			p.losses[i] = loss(row[labels[0]])
		}
		for j := range row {
			if row[j] < negligible || j >= len(p.labels) {
				row[j] = 0
			}
		}
		for _, label := range labels {
			row[label]--
		}
	}
}

// lossOfSet is the sum of the losses of all labels, of which those of the set are right.
func lossOfSet(probabilities []float32, set []int) float64 {
	sum := 0.0
	for _, p := range probabilities {
		sum += loss(1 - p)
	}
	for _, label := range set {
		sum += loss(probabilities[label]) - loss(1-probabilities[label])
	}
	return sum
}

func loss(probability float32) float64 { return -math.Log(max(float64(probability), negligible)) }

// slopeDense sets the gradient of inputs that every example has.
func (p *problem) slopeDense(g []float32, lo, hi int, s *scratch) {
	n := len(p.examples)
	x := floats(&s.inputs, (hi-lo)*n)
	for j, e := range p.examples {
		for i := lo; i < hi; i++ {
			if x[(i-lo)*n+j] = 1; i < p.dimension {
				x[(i-lo)*n+j] = e.vector[i]
			}
		}
	}
	s.matrix.PackCols(simd.NewView(p.residual, n, p.width)).
		Mul(simd.NewView(g[lo*p.width:], hi-lo, p.width), simd.NewView(x, hi-lo, n), &s.simd)
}

// dot is the product of two vectors as long as the weights.
func (p *problem) dot(a, b []float32) float64 {
	sums := make([]float64, (len(a)+floatBlock-1)/floatBlock)
	p.each(len(a), func(lo, hi int) { sums[lo/floatBlock] = float64(simd.Dot(a[lo:hi], b[lo:hi])) })
	sum := 0.0
	for _, s := range sums {
		sum += s
	}
	return sum
}

// add adds a multiple of x to y.
func (p *problem) add(y []float32, by float64, x []float32) {
	term := []feature{{Factor: float32(by)}}
	p.each(len(y), func(lo, hi int) { simd.Best().AddRows(y[lo:hi], simd.NewView(x[lo:hi], 1, hi-lo), term) })
}

// each calls work for the blocks of a vector.
func (p *problem) each(n int, work func(lo, hi int)) {
	p.blocks(n, floatBlock, func(lo, hi int, _ *scratch) { work(lo, hi) })
}

// blocks calls work for each block of n things, on as many goroutines as processors may
// run. Blocks do not depend on that number.
func (p *problem) blocks(n, size int, work func(lo, hi int, s *scratch)) {
	count := int64((n + size - 1) / size)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), count) {
		workers.Go(func() {
			s := p.memory.Get().(*scratch)
			defer p.memory.Put(s)
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				work(int(i)*size, min(int(i+1)*size, n), s)
			}
		})
	}
	workers.Wait()
}
