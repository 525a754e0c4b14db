package relevance

import (
	"math"

	"github.com/racflow/racflow/sdk"
)

// inspected is how many of the best candidates the coverage is looked for in.
const inspected = 5

// model is a logistic regression (Platt, "Probabilistic outputs for support vector
// machines", 1999) over the features.
type model struct {
	offset, cosine, covered float64
	unlikely                float64 // the probability below which a person should know
	calibrated              bool    // the probability is worth showing
}

// The models as they fit the collections that the package's documentation names.
var (
	// byMiniLM knows how cosines of minilm are distributed.
	byMiniLM = model{offset: -4.16, cosine: 5.29, covered: 3.66, unlikely: .15, calibrated: true}
	// byWords goes by words alone, since another embedder has cosines of its own.
	byWords = model{offset: -2.33, covered: 5.03, unlikely: .2}
)

// Features are what is known of the best candidates of a question.
type Features struct {
	Cosine  float64 // of the nearest; NaN: no vectors were compared
	Covered float64 // the largest share of the question's words, by weight, that one of the first five has
}

// Features reads those of candidates, best first as a pipeline left them; false: there is
// nothing to judge by, since nothing was searched for, or the question has no word that
// tells passages apart.
func (t *Terms) Features(best []sdk.Candidate) (Features, bool) {
	f, scored := Features{Cosine: math.NaN()}, false
	for i, c := range best {
		if dense := float64(c.Dense); !math.IsNaN(dense) && !(f.Cosine >= dense) {
			f.Cosine = dense
		}
		scored = scored || !math.IsNaN(float64(c.Dense)) || !math.IsNaN(float64(c.Lexical))
		if i < inspected && t.total > 0 {
			f.Covered = max(f.Covered, t.covered(searched(c)))
		}
	}
	return f, scored && t.total > 0
}

// Judgement is whether one of the candidates is likely to answer the question.
type Judgement struct {
	Unlikely bool // probably none does
	// Probability that one does, where half of all questions have an answer; NaN: not known
	// well enough to be shown.
	Probability float64
}

// Judge judges the best candidates of a question, found by an embedder as a file names it.
// Where there is nothing to judge by, nothing is unlikely.
func (t *Terms) Judge(embedder string, best []sdk.Candidate) Judgement {
	f, ok := t.Features(best)
	if !ok {
		return Judgement{Probability: math.NaN()}
	}
	m := byWords
	if embedder == "minilm" && !math.IsNaN(f.Cosine) {
		m = byMiniLM
	}
	p := m.probability(f)
	j := Judgement{Unlikely: p < m.unlikely, Probability: p}
	if !m.calibrated {
		j.Probability = math.NaN()
	}
	return j
}

func (m model) probability(f Features) float64 {
	z := m.offset + m.covered*f.Covered
	if m.cosine != 0 {
		z += m.cosine * f.Cosine
	}
	return 1 / (1 + math.Exp(-z))
}
