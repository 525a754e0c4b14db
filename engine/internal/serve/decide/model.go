package decide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Model answers questions from a pipeline.
type Model struct {
	Labels    []string
	Described map[string]sdk.Described // descriptions of labels from a table; may be nil
	Form      sdk.LabelForm
	// Decide takes an item through the pipeline. The result lists the probabilities of all labels that the election
	// estimates. Embed returns a vector of each text; nil: the text has no vector. It returns no vectors at all if
	// there is no embedder.
	Decide func(context.Context, workspace.Item) (result.Result, error)
	Embed  func(context.Context, []string) ([][]float32, error)

	ids, names map[string]string
}

// Answer is the answer to a question.
type Answer struct {
	P          []float64 // by option; for a predicate only the probability that it is true
	Best       int       // the likeliest option
	Confidence float64   // 0 to 1
	Described  bool      // from the options' descriptions, not from examples
}

// Score returns the mean level, from 0.
func (a Answer) Score() (mean float64) {
	for i, p := range a.P {
		mean += float64(i) * p
	}
	return mean
}

// Answer answers the questions of a request, in order, and returns the tokens that language models used. An error is a
// Mistake, or an error of Decide or Embed.
func (m Model) Answer(ctx context.Context, r Request) ([]Answer, sdk.Usage, error) {
	m.index()
	read, texts := make([]resolved, len(r.Questions)), newTexts(r.Item.Text)
	asked := false
	for i, q := range r.Questions {
		var err error
		if read[i], err = m.resolve(q, texts); err != nil {
			return nil, sdk.Usage{}, err
		}
		asked = asked || read[i].described == nil
	}
	var of result.Result
	var believed Belief
	var err error
	if asked {
		if of, err = m.Decide(ctx, r.Item); err != nil {
			return nil, sdk.Usage{}, err
		}
		believed = BeliefOf(of, m.Labels, m.Form)
	}
	cosines, err := m.compare(ctx, texts, r)
	if err != nil {
		return nil, of.Usage, err
	}
	answers := make([]Answer, len(read))
	for i, q := range r.Questions {
		answers[i] = read[i].answer(q, believed, cosines)
	}
	return answers, of.Usage, nil
}

// resolved is a question whose options have been looked up.
type resolved struct {
	nodes     []string // by option; for a predicate only its label
	none      int      // the option for everything else; -1: there is none
	described []int    // if the options are no labels: by option, the number of its text, or -1; nil: they are labels
}

// resolve looks up the labels of a question, or adds the texts of its options to texts.
func (m Model) resolve(q Question, texts *texts) (resolved, error) {
	r := resolved{none: -1}
	if q.Kind == Predicate {
		for _, name := range []string{q.About, q.Options[0].Text} {
			if node, ok := m.label(cmp.Or(q.Label, name)); ok {
				r.nodes = []string{node}
				return r, nil
			}
		}
		if q.Label != "" {
			return r, m.noLabel(q, []string{q.Label})
		}
		yes, no := q.Options[0].described(), q.Options[1].described()
		if yes == "" && no == "" {
			yes = q.About
		}
		if yes+no == "" {
			return r, mistake(q.At, Missing, "it has no instructions and no criteria")
		}
		r.described = []int{texts.add(yes), texts.add(no)}
		return r, nil
	}
	var strange []string
	for i, o := range q.Options {
		node, ok := m.label(o.Name)
		switch {
		case !ok && r.none < 0 && strings.EqualFold(o.Name, "none"):
			r.none = i
		case !ok:
			strange = append(strange, o.Name)
		}
		r.nodes = append(r.nodes, node)
	}
	labels := len(q.Options) - len(strange)
	if r.none >= 0 {
		labels--
	}
	switch {
	case len(strange) == 0:
		return r, nil
	case labels > 0:
		return r, m.noLabel(q, strange)
	}
	for _, o := range q.Options {
		r.described = append(r.described, texts.add(o.described()))
	}
	return r, nil
}

// noLabel returns the mistake that some names are no labels.
func (m Model) noLabel(q Question, strange []string) *Mistake {
	return mistake(q.At, NotLabel, "no label of this pipeline: %s; write none for what is outside of the options; the labels are %s", listed(strange, 10), listed(m.Labels, 100))
}

func listed(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// index builds the maps that label uses.
func (m *Model) index() {
	m.ids, m.names = make(map[string]string, len(m.Labels)), map[string]string{}
	for _, label := range m.Labels {
		m.ids[label] = label
		if m.Form.Levels != "" && !m.Form.Many {
			for _, node := range m.Form.Path(label) {
				m.ids[node] = node
			}
		}
	}
}

// label returns the label or node that a text names.
func (m Model) label(name string) (string, bool) {
	if id, ok := m.ids[name]; ok {
		return id, true
	}
	if len(m.names) == 0 {
		for label, d := range m.Described {
			if _, ok := m.ids[label]; ok && d.Name != "" {
				m.names[sdk.FoldLabel(d.Name)] = label
			}
		}
		for id := range m.ids { // ids take precedence over names
			m.names[sdk.FoldLabel(id)] = id
		}
	}
	id, ok := m.names[sdk.FoldLabel(name)]
	return id, ok && name != ""
}

// texts are the texts to compare with the state, without duplicates.
type texts struct {
	all  []string
	seen map[string]int
}

func newTexts(state string) *texts { return &texts{all: []string{state}, seen: map[string]int{}} }

// add returns the number of a text; -1: it is empty.
func (t *texts) add(text string) int {
	if text == "" {
		return -1
	}
	at, ok := t.seen[text]
	if !ok {
		at = len(t.all)
		t.all, t.seen[text] = append(t.all, text), at
	}
	return at
}

// compare returns the cosine of the first text with each text.
func (m Model) compare(ctx context.Context, t *texts, r Request) ([]float64, error) {
	if len(t.all) == 1 {
		return nil, nil
	}
	if len(t.all) > MaxTexts {
		return nil, mistake([]any{"questions"}, Wrong, "the questions have %d descriptions to compare the text with, and a request has at most %d", len(t.all)-1, MaxTexts-1)
	}
	if err := r.Item.Row(1).Err; err != nil {
		return nil, &result.Failure{Line: 1, Message: err.Error()}
	}
	vectors, err := m.Embed(ctx, t.all)
	if failed := (sdk.RowErrors{}); errors.As(err, &failed) {
		return nil, mistake([]any{"questions"}, Wrong, "the text or a description cannot be compared: %v", err)
	}
	if err != nil {
		return nil, err
	}
	if vectors == nil {
		return nil, mistake([]any{"questions"}, NotLabel, "the options are no labels, and this pipeline has no embedder to compare descriptions with; its labels are %s", listed(m.Labels, 100))
	}
	cosines := make([]float64, len(vectors))
	for i, v := range vectors {
		cosines[i] = cosine(vectors[0], v)
	}
	return cosines, nil
}

func cosine(a, b []float32) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// Constants that convert cosines to probabilities; see the package's documentation.
const steep, even = 20, 0.3

// answer answers a question from a Belief, or from cosines of texts.
func (r resolved) answer(q Question, b Belief, cosines []float64) Answer {
	if r.described == nil && q.Kind == Predicate {
		return Answer{P: []float64{b.Of(r.nodes[0])}}
	}
	a := Answer{Described: r.described != nil}
	if r.described == nil {
		a.P, a.Confidence = b.among(r.nodes, r.none)
	} else {
		near := make([]float64, len(r.described))
		for i, at := range r.described {
			if near[i] = even; at >= 0 {
				near[i] = cosines[at]
			}
		}
		a.P = softmax(near)
		a.Confidence = Confidence(slices.Max(a.P), len(a.P))
	}
	if q.Kind == Predicate {
		return Answer{P: a.P[:1], Described: true}
	}
	for i, p := range a.P {
		if best := a.P[a.Best]; p > best || p == best && q.Options[i].Name < q.Options[a.Best].Name {
			a.Best = i
		}
	}
	return a
}

// softmax converts cosines to probabilities.
func softmax(cosines []float64) []float64 {
	p := make([]float64, len(cosines))
	for i, c := range cosines {
		p[i] = math.Exp(steep * (c - 1))
	}
	sum := total(p)
	for i := range p {
		p[i] /= sum
	}
	return p
}
