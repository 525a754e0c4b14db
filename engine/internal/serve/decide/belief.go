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
	nodes  map[string]float64 // if labels have levels: probabilities of the labels and of the nodes above
	answer string
	others float64 // factor for labels other than the answer, if possibly no label fits; see leave
}

// smooth is the share of the votes that is spread over all labels, so that no label is impossible.
const smooth = 0.01

// BeliefOf returns the Belief from an election's result. labels are all labels of the election.
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

// independent sets the probabilities of labels in sets, where each label has its own.
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

// sure returns the probability of an answer: its confidence or, without one, its agreement.
func sure(r result.Result) float64 {
	switch {
	case r.Decided != nil:
		return 1
	case r.Confidence > 0:
		return r.Confidence
	}
	return r.Agreement
}

// way returns the nodes with probabilities from the election, from the top down.
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

// divide divides probabilities among labels by their shares, which are above 0. The labels below the last node of
// a way share the node's probability. The labels that branch off at a node share the difference to the node above.
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

// leave sets others: the probability that no label fits is taken from the labels other than the answer, because the
// answer's confidence already accounts for it.
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

// beside returns the probability of a node if possibly no label fits.
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

// Of returns the probability of a label, or of a node: the sum over all labels below the node.
func (b Belief) Of(node string) float64 {
	if b.nodes == nil {
		return b.of[node]
	}
	return min(b.nodes[node], 1)
}

// among returns the probabilities of options, which add up to 1, and the confidence in the likeliest option. nodes
// are the options' labels; none is the option for everything else, or -1.
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

// total adds probabilities in sorted order, so that rounding does not depend on the order of the
// options.
func total(p []float64) (sum float64) {
	for _, x := range slices.Sorted(slices.Values(p)) {
		sum += x
	}
	return sum
}

// Confidence returns TypeSafe's confidence for the likeliest of n options: 0 if it is no likelier than by chance,
// 1 if it is certain.
func Confidence(p float64, n int) float64 {
	chance := 1 / float64(n)
	return min(max((p-chance)/(1-chance), 0), 1)
}
