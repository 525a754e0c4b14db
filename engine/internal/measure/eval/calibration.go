package eval

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Calibration measures how well the confidence of answers predicts that they are right. If the
// election estimates no confidence, its agreement replaces it.
//
// The first four figures test, for every scored item, whether it was answered with the expected
// label. An item that failed or got no answer has confidence 0 and fails the test, even if it is
// out of scope, because no answer was claimed to be right. The figures say nothing about the labels
// that did not win.
type Calibration struct {
	Measured string `json:"measured"` // confidence or agreement
	// ECE is the expected calibration error: the mean distance between the mean confidence and the
	// share of right answers over 15 bins of equal width, weighted by their items (Guo, Pleiss, Sun
	// and Weinberger, "On calibration of modern neural networks", ICML 2017).
	ECE float64 `json:"ece"`
	// Chance is the 95th percentile of the ECE, in seeded draws, for perfectly calibrated answers
	// with these confidences: a greater ECE is not chance. With few items, Chance is high (Bröcker
	// and Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting
	// 22:651-661, 2007).
	Chance float64 `json:"ece_by_chance"`
	// NLL is the mean negative log-likelihood (natural logarithm) of whether the answer is right.
	// Confidences are limited to 10^-6 to 1 - 10^-6, so that one certain error costs 13.8 and not
	// infinity.
	NLL float64 `json:"nll"`
	// Brier is the mean squared distance of the confidence from the truth: 1 for a right answer,
	// otherwise 0 (Brier, "Verification of forecasts expressed in terms of probability", Monthly
	// Weather Review 78:1-3, 1950).
	Brier float64 `json:"brier"`
	// UnknownAUROC and DoubtAUROC are areas under ROC curves (auroc): how well the election's
	// probability that no label fits, and a low confidence, tell items out of scope from items in
	// scope. An item without an answer counts as found. 0: no item is out of scope, or the election
	// estimates no such probability.
	UnknownAUROC float64 `json:"unknown_auroc,omitempty"`
	DoubtAUROC   float64 `json:"doubt_auroc,omitempty"`
	// Coverage is sorted by rising share. Its last accuracy is Report.Accuracy.
	Coverage []Coverage `json:"coverage"`
}

// Coverage is the accuracy of the surest items: one minus the risk at a coverage (Geifman and
// El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017). An item out of
// scope is right if it has no answer, as in Report.Accuracy. If only some of several equally sure
// items belong to the share, each of them counts the same fraction.
type Coverage struct {
	Share      float64 `json:"share"` // of the scored items
	Accuracy   float64 `json:"accuracy"`
	Confidence float64 `json:"confidence"` // of the least sure item in the share
}

// percents are the shares in Calibration.Coverage.
var percents = []int{50, 60, 70, 80, 90, 95, 100}

// certain is how close to 0 and 1 a confidence may come in the NLL.
const certain = 1e-6

// Confidences gathers the confidences of answers.
type Confidences struct {
	counter   *Counter // says which answers are right
	estimated bool     // the election estimates confidence
	unknown   bool     // the election estimates whether items are out of scope
	items     []answeredItem
}

type answeredItem struct {
	confidence float64
	unknown    float64 // 1: no answer
	outside    bool
	answered   bool // with the expected label
	right      bool // answered, or rightly left without an answer
}

// NewConfidences returns an empty counter. The labels are the knowledge's.
func NewConfidences(labels ...string) *Confidences {
	return &Confidences{counter: NewCounter(labels...)}
}

// Add counts one result.
func (c *Confidences) Add(r outcome.Result) {
	if !Scored(r) {
		return
	}
	one := answeredItem{right: c.counter.Right(r), outside: c.counter.Outside(r), unknown: 1}
	if r.Failure == nil && r.Answer != "" {
		one.confidence, one.answered, one.unknown = r.Agreement, one.right, r.Unknown
		c.unknown = c.unknown || r.Unknown > 0
		if r.Confidence > 0 {
			one.confidence, c.estimated = r.Confidence, true
		}
		one.confidence = min(max(one.confidence, 0), 1)
	}
	c.items = append(c.items, one)
}

// Report computes the figures; nil: nothing was counted.
func (c *Confidences) Report() *Calibration {
	if len(c.items) == 0 {
		return nil
	}
	c.sort()
	r := &Calibration{Measured: "agreement"}
	if c.estimated {
		r.Measured = "confidence"
	}
	var hits bins
	confidences := make([]float64, len(c.items))
	n := float64(len(c.items))
	for i, one := range c.items {
		confidences[i] = one.confidence
		hits.add(one.confidence, one.answered)
		sure, truth := min(max(one.confidence, certain), 1-certain), 0.
		if one.answered {
			truth = 1
			r.NLL -= math.Log(sure) / n
		} else {
			r.NLL -= math.Log1p(-sure) / n
		}
		r.Brier += (one.confidence - truth) * (one.confidence - truth) / n
	}
	r.ECE, r.Chance = hits.ece(), chance(confidences)
	r.DoubtAUROC = auroc(c.items, func(i answeredItem) float64 { return -i.confidence })
	if c.unknown {
		r.UnknownAUROC = auroc(c.items, func(i answeredItem) float64 { return i.unknown })
	}
	for _, percent := range percents {
		r.Coverage = append(r.Coverage, c.cover(percent))
	}
	return r
}

// auroc returns the area under the ROC curve. It takes all pairs of an item out of scope and an item
// in scope, and returns the share in which the first has the higher score; equal scores count half
// (Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic
// (ROC) curve", 1982). It returns 0 if there are no pairs.
func auroc(items []answeredItem, score func(answeredItem) float64) float64 {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b answeredItem) int { return cmp.Compare(score(a), score(b)) })
	higher, in, out := 0., 0., 0.
	for from, to := 0, 0; from < len(items); from = to {
		ties := [2]float64{} // in scope, and out of it
		for to < len(items) && score(items[to]) == score(items[from]) {
			if items[to].outside {
				ties[1]++
			} else {
				ties[0]++
			}
			to++
		}
		higher += ties[1] * (in + ties[0]/2)
		in, out = in+ties[0], out+ties[1]
	}
	if in*out == 0 {
		return 0
	}
	return higher / (in * out)
}

// Curve returns Calibration.Coverage at every second percent, by rising share; nil: nothing was
// counted.
func (c *Confidences) Curve() (all []Coverage) {
	if len(c.items) == 0 {
		return nil
	}
	c.sort()
	for percent := 2; percent <= 100; percent += 2 {
		all = append(all, c.cover(percent))
	}
	return all
}

// sort puts the surest items first.
func (c *Confidences) sort() {
	slices.SortStableFunc(c.items, func(a, b answeredItem) int { return cmp.Compare(b.confidence, a.confidence) })
}

// cover returns the accuracy of the surest percent of the items, which are sorted.
func (c *Confidences) cover(percent int) Coverage {
	wanted := float64(percent*len(c.items)) / 100
	right, at := 0., 0
	for at < len(c.items) {
		tied := at
		hits := 0.
		for tied < len(c.items) && c.items[tied].confidence == c.items[at].confidence {
			if c.items[tied].right {
				hits++
			}
			tied++
		}
		if float64(tied) >= wanted {
			right += hits * (wanted - float64(at)) / float64(tied-at)
			break
		}
		right, at = right+hits, tied
	}
	return Coverage{Share: float64(percent) / 100, Accuracy: right / wanted, Confidence: c.items[at].confidence}
}

const binCount = 15

// bins sum up confidences by size: (0, 1/15], (1/15, 2/15] ...; 0 is in the first.
type bins struct {
	items             int
	confidence, right [binCount]float64
}

// bin returns the bin of a confidence.
func bin(confidence float64) int { return max(int(math.Ceil(confidence*binCount))-1, 0) }

func (b *bins) add(confidence float64, right bool) {
	at := bin(confidence)
	b.items++
	b.confidence[at] += confidence
	if right {
		b.right[at]++
	}
}

// Bin sums up the items whose confidence is above Low and at most High; 0 is in the first bin.
type Bin struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Items      int     `json:"items"`
	Confidence float64 `json:"confidence"` // mean
	Right      float64 `json:"right"`      // share answered with the expected label
}

// Bins returns the bins of Calibration.ECE that have items: the points of a reliability diagram.
func (c *Confidences) Bins() (all []Bin) {
	var sums bins
	var items [binCount]int
	for _, one := range c.items {
		sums.add(one.confidence, one.answered)
		items[bin(one.confidence)]++
	}
	for at, n := range items {
		if n > 0 {
			all = append(all, Bin{float64(at) / binCount, float64(at+1) / binCount, n, sums.confidence[at] / float64(n), sums.right[at] / float64(n)})
		}
	}
	return all
}

// ece returns the expected calibration error. A bin with n of N items weighs n/N, and its means are
// sums divided by n.
func (b *bins) ece() float64 {
	sum := 0.
	for i := range b.right {
		sum += math.Abs(b.right[i] - b.confidence[i])
	}
	return sum / float64(b.items)
}

// Numbers of draws. Many items get fewer draws, because their ECE varies less.
const (
	mostDraws  = 1000
	leastDraws = 200
	drawn      = 20_000_000 // limit of all drawn outcomes, unless that gives too few draws
)

// chance returns the 95th percentile of the expected calibration error if each item is right with
// the probability that its confidence says.
func chance(confidences []float64) float64 {
	at := make([]int, len(confidences))
	expected := bins{items: len(confidences)}
	for i, c := range confidences {
		at[i] = bin(c)
		expected.confidence[at[i]] += c
	}
	random := rand.New(rand.NewPCG(15, uint64(len(confidences)))) //nolint:gosec // a simulation
	found := make([]float64, min(max(drawn/len(confidences), leastDraws), mostDraws))
	for k := range found {
		expected.right = [binCount]float64{}
		for i, c := range confidences {
			if random.Float64() < c {
				expected.right[at[i]]++
			}
		}
		found[k] = expected.ece()
	}
	slices.Sort(found)
	return found[int(math.Ceil(.95*float64(len(found))))-1]
}
