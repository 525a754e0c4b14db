package relevance

import (
	"math"

	"github.com/racflow/racflow/sdk"
)

// Unlikely is the probability below which a person is told that probably nothing answers
// the question.
const Unlikely = 0.2

// inspected is how many of the best candidates the coverage is looked for in.
const inspected = 5

// model is a logistic regression (Platt, "Probabilistic outputs for support vector
// machines", 1999) over the features.
type model struct{ offset, cosine, covered float64 }

// The models that fit all of the sets of TestMeasured, whose doc says what they are worth.
var (
	// byMiniLM knows how cosines of minilm are distributed.
	byMiniLM = model{offset: -3.87, cosine: 4.76, covered: 4.27}
	// byWords goes by words alone, since another embedder has cosines of its own.
	byWords = model{offset: -2.3, covered: 5.2}
)

// features are what a model sees of the candidates of a question.
type features struct {
	cosine  float64 // of the nearest; NaN: no vectors were compared
	covered float64 // the largest share of the question's words in one of the best
}

// read returns the features of the best candidates; false: there is nothing to judge by.
func (t *Terms) read(best []sdk.Candidate) (features, bool) {
	f, scored := features{cosine: math.NaN()}, false
	for i, c := range best {
		if dense := float64(c.Dense); !math.IsNaN(dense) && !(f.cosine >= dense) {
			f.cosine = dense
		}
		scored = scored || !math.IsNaN(float64(c.Dense)) || !math.IsNaN(float64(c.Lexical))
		if i < inspected && t.total > 0 {
			f.covered = max(f.covered, t.covered(searched(c)))
		}
	}
	return f, scored && t.total > 0
}

// Probability is how likely it is that one of the candidates answers the question, best
// first as a pipeline left them. The embedder is named as in a file. false: that cannot
// be said, since nothing was searched for, or the question has no word that tells
// passages apart.
func (t *Terms) Probability(embedder string, best []sdk.Candidate) (float64, bool) {
	f, ok := t.read(best)
	if !ok {
		return 0, false
	}
	m := byWords
	if embedder == "minilm" && !math.IsNaN(f.cosine) {
		m = byMiniLM
	}
	return m.probability(f), true
}

func (m model) probability(f features) float64 {
	z := m.offset + m.covered*f.covered
	if m.cosine != 0 {
		z += m.cosine * f.cosine
	}
	return 1 / (1 + math.Exp(-z))
}
