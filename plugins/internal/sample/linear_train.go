package sample

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/internal/embed"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// heldOut holds the scores of examples by models that have not learned from them.
type heldOut struct {
	scores [][]float32
	truth  [][]int // the labels
	many   bool
}

// add adds a model's scores of held-out examples.
func (h *heldOut) add(m *model, held []example) {
	m.eachScore(held, func(e example, scores []float32) {
		h.scores, h.truth = append(h.scores, slices.Clone(scores)), append(h.truth, e.labels)
	})
	h.many = m.many
}

// loss is the negative log-likelihood of the true labels, with scores multiplied by the factor that minimises it.
func (h *heldOut) loss() (sum float64) {
	m, factor := model{many: h.many}, float32(h.likeliest(0))
	var p []float32
	for i, scores := range h.scores {
		p = append(p[:0], scores...)
		m.probabilities(p, factor)
		for _, label := range h.truth[i] {
			sum += loss(p[label])
			p[label] = 0
		}
		for label := 0; h.many && label < len(p); label++ {
			sum += loss(1 - p[label])
		}
	}
	return sum
}

func loss(probability float32) float64 { return -math.Log(max(float64(probability), negligible)) }

// eachScore calls f with each example and its scores. f may change the scores.
func (m *model) eachScore(examples []example, f func(example, []float32)) {
	scores, terms := make([]float32, m.width), []feature(nil)
	for _, e := range examples {
		terms = e.terms(terms[:0])
		m.score(scores, terms)
		f(e, scores[:len(m.labels)])
	}
}

const (
	extreme    = 16  // the largest factor, and the inverse of the smallest one
	usualScale = 2.5 // the factor if examples are too few
)

// likeliest returns the factor that makes the true labels likeliest, by bisection of the slope, which rises. With
// fewer than fewestHeld examples it returns usual.
func (h *heldOut) likeliest(usual float64) float64 {
	if len(h.scores) < fewestHeld {
		return usual
	}
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

// slope is the derivative of the negative log-likelihood by the factor. As with Platt, the target probability of the
// true label is 1 - 1/(n+2), so that n right answers of n do not make the next one certain.
func (h *heldOut) slope(factor float64) float64 {
	m, sum, doubt := model{many: h.many}, 0.0, 1/float64(len(h.scores)+2)
	var p []float32
	for i, scores := range h.scores {
		p = append(p[:0], scores...)
		m.probabilities(p, float32(factor))
		others := doubt // the target of each wrong label
		if !h.many {
			others /= float64(max(len(scores)-1, 1))
		}
		for label, x := range scores {
			want := others
			if slices.Contains(h.truth[i], label) {
				want = 1 - doubt
			}
			sum += (float64(p[label]) - want) * float64(x)
		}
	}
	return sum
}

// These bounds limit the training; they do not depend on the time that it takes.
const (
	folds      = 3
	triedRows  = 2000 // of cross-validation
	heldRows   = 200  // enough held-out rows to stop
	fewestHeld = 10   // the fewest held-out rows that are of use
)

// lengths are the lengths of the text features that cross-validation chooses from.
var lengths = []float32{.7, 1.2}

const negligible = 1e-7 // smaller probabilities count as this

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
	x, examples := &embed.HashedFeatures{Analyzer: v.analyzer}, make([]example, len(all))
	hashed := func(e example) []feature {
		if e.features != nil {
			return e.features
		}
		return hashText(x, e.text, v.Features)
	}
	for i, row := range all {
		examples[i] = example{text: row.text, vector: row.vector, inputs: row.inputs}
		for _, label := range v.form.Split(row.label) {
			at, _ := slices.BinarySearch(labels, label)
			examples[i].labels = append(examples[i].labels, at)
		}
	}
	fresh := func(labels []string, from []example, features func(example) []feature) *model {
		m := newModel(labels, r.dimension, learnIDF(from, features, v.Features))
		m.many = v.form.Many
		return m
	}
	for i, e := range examples[:min(len(examples), triedRows)] {
		examples[i].features = hashed(e)
	}
	tried, some := withoutDescriptions(labels, all, examples)
	tried = slices.Clone(tried[:min(len(tried), triedRows)])
	for i, e := range tried {
		tried[i].features = hashed(e)
	}
	length, held, err := choose(ctx, tried, func(from []example) *model {
		return fresh(some, from, func(e example) []feature { return e.features })
	})
	if err != nil {
		return nil, err
	}
	// Other texts are hashed a second time: the unweighed features of all texts would take several times the memory.
	m := fresh(labels, examples, hashed)
	for i, e := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		examples[i].features = m.weigh(hashed(e))
	}
	err = m.train(ctx, examples, length)
	m.scale = float32(held.likeliest(usualScale))
	return m, err
}

// learnIDF returns the inverse document frequencies of buckets, smoothed as in scikit-learn. features returns the
// unweighed features of a text.
func learnIDF(texts []example, features func(example) []feature, buckets int) []float32 {
	df := make([]int, buckets)
	for _, e := range texts {
		for _, f := range features(e) {
			df[f.Row]++
		}
	}
	idf := make([]float32, buckets)
	for i, n := range df {
		if n >= minTexts {
			idf[i] = float32(1 + math.Log(float64(len(texts)+1)/float64(n+1)))
		}
	}
	return idf
}

// withoutDescriptions returns the examples that are no descriptions of labels, and their labels. Nobody asks what a
// label means, so descriptions do not count in cross-validation.
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
	for i, e := range all {
		all[i].features = m.weigh(e.features)
	}
	return all
}

// choose returns the length of the text features, beside vectors of length 1, that makes held-out labels likeliest.
// It also returns the scores of the held-out examples with that length. Labels with one example are left out. The
// examples are in random order.
func choose(ctx context.Context, examples []example, fresh func([]example) *model) (length float32, held *heldOut, err error) {
	counts := map[int]int{}
	for _, e := range examples {
		for _, label := range e.labels {
			counts[label]++
		}
	}
	several := slices.DeleteFunc(slices.Clone(examples), func(e example) bool {
		return slices.ContainsFunc(e.labels, func(label int) bool { return counts[label] < 2 })
	})
	length, held = textNorm, new(heldOut)
	if len(several) < fewestHeld {
		return length, held, nil
	}
	said := make([]heldOut, len(lengths))
	for fold := 0; fold < folds && len(said[0].scores) < heldRows; fold++ {
		var learnt, tried []example
		for i, e := range several {
			if i%folds == fold {
				tried = append(tried, e)
			} else {
				learnt = append(learnt, e)
			}
		}
		m := fresh(learnt)
		learnt, tried = m.weighAll(learnt), m.weighAll(tried)
		for i, length := range lengths {
			if err := m.train(ctx, learnt, length); err != nil {
				return 0, nil, err
			}
			said[i].add(m, tried)
		}
	}
	least := math.Inf(1)
	for i := range said {
		if loss := said[i].loss(); loss < least {
			least, length, held = loss, lengths[i], &said[i]
		}
	}
	return length, held, nil
}

// model is a linear layer: scores = Σ x[i]·weights[i].
type model struct {
	labels    []string // sorted
	dimension int      // of the vectors
	vocabulary
	width int // of a row of weights: the number of labels, rounded up for the processor
	// weights has a row for each dimension of the vectors, one for the constant input, and one for each used bucket.
	weights []float32
	scale   float32 // factor of the scores, once the weights are learned
	many    bool    // labels are sets: each label's probability is independent of the others
}

// width is the length of a row of weights for that many labels.
func width(labels int) int { return (labels + simd.PanelCols - 1) / simd.PanelCols * simd.PanelCols }

func newModel(labels []string, dimension int, idf []float32) *model {
	m := &model{labels: labels, dimension: dimension, width: width(len(labels)), scale: 1}
	m.vocabulary = newVocabulary(idf, dimension+1)
	m.weights = make([]float32, m.inputs()*m.width)
	return m
}

// inputs is the number of inputs: the vector's dimensions, the constant 1, and the used features.
func (m *model) inputs() int { return m.dimension + 1 + m.used }

// example is a row or item as the model sees it.
type example struct {
	text     string
	vector   []float32 // nil: see inputs
	inputs   []feature // the non-zero numbers of the vector
	features []feature
	labels   []int // one, or all of a set; an item has none
}

// terms appends the model's inputs for the example.
func (e *example) terms(to []feature) []feature {
	if e.vector != nil {
		to = appendInputs(to, e.vector)
	}
	return append(append(to, e.inputs...), e.features...)
}

// score sets scores to the margins of an example with the given terms.
func (m *model) score(scores []float32, terms []feature) {
	clear(scores)
	simd.Best().AddRows(scores, simd.NewView(m.weights, m.inputs(), m.width), terms)
}

// probabilities turns scores into probabilities.
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

// best returns the indices of the n greatest values, greatest first.
func best(values []float32, n int) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order[:min(n, len(order))]
}
