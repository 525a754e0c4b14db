package decide

import (
	"slices"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Belief has the probabilities of labels for one text.
type Belief struct {
	form   sdk.LabelForm
	labels []string
	of     map[string]float64
	nodes  map[string]float64 // where labels have levels: of the nodes above them, and of themselves
	answer string
	others float64 // what is left of labels other than the answer, where no label may fit; see leave
}

// smooth is the share that all labels together have of the votes, so that none is impossible.
const smooth = 0.01

// BeliefOf returns what an election makes of a text. labels are all that it knows.
func BeliefOf(r result.Result, labels []string, form sdk.LabelForm) Belief {
	b := Belief{form: form, labels: labels, of: make(map[string]float64, len(labels))}
	listed := 0.0
	for _, l := range r.Labels {
		listed += l.Confidence
	}
	switch {
	case form.Many:
		b.independent(r)
	case form.Levels == "" && len(r.Labels) > 0:
		rest := max(1-listed, 0) / float64(max(len(labels)-len(r.Labels), 1))
		for _, label := range labels {
			b.of[label] = rest
		}
		for _, l := range r.Labels {
			b.of[l.Label] = l.Confidence
		}
	default:
		b.divide(way(r, form), shares(r.Votes, labels))
	}
	if form.Levels != "" && !form.Many {
		b.nodes = map[string]float64{}
		for _, label := range labels {
			for _, node := range form.Path(label) {
				b.nodes[node] += b.of[label]
			}
		}
	}
	if !form.Many {
		b.leave(r)
	}
	return b
}

// independent takes the probabilities of sets, in which each label has its own.
func (b Belief) independent(r result.Result) {
	for _, l := range r.Labels {
		b.of[l.Label] = l.Confidence
	}
	if len(r.Labels) == 0 {
		for _, label := range b.form.Split(string(r.Answer)) {
			b.of[label] = sure(r)
		}
	}
}

// sure is the probability of an answer, as far as anybody says.
func sure(r result.Result) float64 {
	switch {
	case r.Decided != nil:
		return 1
	case r.Confidence > 0:
		return r.Confidence
	}
	return r.Agreement
}

// way returns the nodes whose probabilities an election tells, each below the one before it.
func way(r result.Result, form sdk.LabelForm) []sdk.LabelConfidence {
	if form.Levels != "" && len(r.Labels) > 0 && r.Decided == nil {
		return r.Labels
	}
	if r.Answer == "" {
		return nil
	}
	return []sdk.LabelConfidence{{Label: string(r.Answer), Confidence: sure(r)}}
}

// shares returns the labels' shares of the accepted votes.
func shares(votes []result.Vote, labels []string) map[string]float64 {
	of, sum := make(map[string]float64, len(labels)), 0.0
	for _, v := range votes {
		if v.Accepted && v.Answer != "" {
			of[v.Answer] += v.Weight
			sum += v.Weight
		}
	}
	for _, label := range labels {
		if of[label] /= max(sum, 1e-9); sum == 0 {
			of[label] = 0
		}
		of[label] += smooth / float64(len(labels))
	}
	return of
}

// divide gives the labels below the last node of a way its probability, and those that leave the way at a node the
// difference to the one above: by their shares, which are above 0.
func (b Belief) divide(way []sdk.LabelConfidence, shares map[string]float64) {
	depth, sums := make([]int, len(b.labels)), make([]float64, len(way)+1)
	for i, label := range b.labels {
		for depth[i] < len(way) && b.form.Holds(way[depth[i]].Label, label) {
			depth[i]++
		}
		sums[depth[i]] += shares[label]
	}
	for i, label := range b.labels {
		above, below := 1.0, 0.0
		if d := depth[i]; d > 0 {
			above = way[d-1].Confidence
		}
		if d := depth[i]; d < len(way) {
			below = way[d].Confidence
		}
		b.of[label] = max(above-below, 0) * shares[label] / sums[depth[i]]
	}
}

// leave notes what is left of labels other than the answer, where the probability that no label fits is taken from them: the
// answer's confidence knows of it.
func (b *Belief) leave(r result.Result) {
	b.answer, b.others = string(r.Answer), 1
	switch kept := b.Of(b.answer); {
	case r.Answer == "" && slices.ContainsFunc(r.Votes, func(v result.Vote) bool { return v.Accepted }): // the voters say that none fits
		clear(b.of)
		clear(b.nodes)
	case r.Decided == nil && kept < 1:
		b.others = max(1-kept-r.Unknown, 0) / (1 - kept)
	}
}

// beside returns the probability of a node where no label may fit.
func (b Belief) beside(node string) float64 {
	p, kept := b.Of(node), 0.0
	switch {
	case b.answer == "":
	case b.form.Holds(b.answer, node):
		return p
	case b.form.Holds(node, b.answer):
		kept = b.Of(b.answer)
	}
	return kept + (p-kept)*b.others
}

// Of returns the probability of a label, or of a node: that of all labels below it.
func (b Belief) Of(node string) float64 {
	if b.nodes == nil {
		return b.of[node]
	}
	return min(b.nodes[node], 1)
}

// among returns the probabilities of options, which add up to 1, and the confidence in the likeliest. Nodes are the
// options' labels; none is the option for what lies outside them, or -1.
func (b Belief) among(nodes []string, none int) (p []float64, confidence float64) {
	p = make([]float64, len(nodes))
	outside := 1.0
	for i, node := range nodes {
		if i == none {
			continue
		}
		if p[i] = b.Of(node); none >= 0 && !b.form.Many {
			p[i] = b.beside(node)
		}
		outside *= 1 - p[i]
	}
	if !b.form.Many {
		outside = max(1-total(p), 0)
	}
	if none >= 0 {
		p[none] = outside
	}
	all := total(p)
	if all == 0 {
		return slices.Repeat([]float64{1 / float64(len(p))}, len(p)), 0
	}
	confidence = Confidence(slices.Max(p)/max(all, 1), len(p))
	for i := range p {
		p[i] /= all
	}
	return p, confidence
}

// total adds probabilities in an order of their own: rounding does not depend on that of the options.
func total(p []float64) (sum float64) {
	for _, x := range slices.Sorted(slices.Values(p)) {
		sum += x
	}
	return sum
}

// Confidence is TypeSafe's for the likeliest of n options: 0 where it is no likelier than by chance, 1 where it is
// certain.
func Confidence(p float64, n int) float64 {
	chance := 1 / float64(n)
	return min(max((p-chance)/(1-chance), 0), 1)
}
