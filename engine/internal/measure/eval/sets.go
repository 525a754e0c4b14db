package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Sets measures answers that are sets of labels. Report.Accuracy is then the subset accuracy: the
// share of the items whose set is right, label by label. Intervals are percentiles of 1,000
// bootstrap samples of the items (Efron 1979).
type Sets struct {
	// MicroF1 is the F1 of all labels of all items together, with its precision and recall; MacroF1
	// the mean of the F1 of each label (Report.MacroF1); ExampleF1 the mean of the F1 of each item,
	// which is 1 where no label is expected and none is answered.
	MicroF1          float64  `json:"micro_f1"`
	MicroF1Interval  Interval `json:"micro_f1_interval"`
	MacroF1Interval  Interval `json:"macro_f1_interval"`
	ExampleF1        float64  `json:"example_f1"`
	Precision        float64  `json:"micro_precision"`
	Recall           float64  `json:"micro_recall"`
	ExpectedPerItem  float64  `json:"expected_per_item"`
	AnsweredPerItem  float64  `json:"answered_per_item"`
	Empty            int      `json:"empty,omitempty"`               // items whose expected set has no label
	EmptyRight       int      `json:"empty_right,omitempty"`         // of Empty: answered with no label
	LabelsOutOfScope int      `json:"labels_out_of_scope,omitempty"` // expected labels that the knowledge does not have
}

// scoredSet is an item with an expected set.
type scoredSet struct {
	expected, answered []string
	none               bool // the answer is that no label fits
}

func (c *Counter) addSet(r outcome.Result) {
	s := scoredSet{expected: r.Form.Split(r.Expected)}
	if r.Failure == nil {
		s.answered = r.Form.Split(r.Answer)
		s.none = r.Answer == sdk.NoLabels
	}
	c.sets = append(c.sets, s)
}

// confuse counts a wrong answer as pairs of labels. For sets, it pairs each missed label with each
// wrongly answered label.
func (c *Counter) confuse(r outcome.Result) {
	if !r.Form.Many {
		c.confused[Confused{Expected: r.Expected, Answered: r.Answer}]++
		return
	}
	expected, answered := r.Form.Split(r.Expected), r.Form.Split(r.Answer)
	missed, extra := except(expected, answered), except(answered, expected)
	if len(missed) == 0 {
		missed = []string{""}
	}
	if len(extra) == 0 {
		extra = []string{""}
	}
	for _, m := range missed {
		for _, e := range extra {
			c.confused[Confused{Expected: m, Answered: e}]++
		}
	}
}

func except(labels, others []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(others, l) })
}

func (c *Counter) reportSets() *Sets {
	if len(c.sets) == 0 {
		return nil
	}
	var d draws
	s := &Sets{}
	right, expected, answered := 0, 0, 0
	for _, set := range c.sets {
		if len(set.expected) == 0 {
			s.Empty++
			if set.none {
				s.EmptyRight++
				s.ExampleF1 += 1 / float64(len(c.sets))
			}
		}
		both := 0
		var item []labelTally
		for _, label := range set.expected {
			one := labelTally{d.number(label), tally{support: 1}}
			if slices.Contains(set.answered, label) {
				both++
				one.right = 1
			}
			item = append(item, one)
			if len(c.known) > 0 && !c.known[label] {
				s.LabelsOutOfScope++
			}
		}
		for _, label := range set.answered {
			item = append(item, labelTally{d.number(label), tally{answered: 1}})
		}
		d.items = append(d.items, item)
		right, expected, answered = right+both, expected+len(set.expected), answered+len(set.answered)
		s.ExampleF1 += share(2*both, len(item)) / float64(len(c.sets))
	}
	s.MicroF1, s.Precision, s.Recall = share(2*right, expected+answered), share(right, answered), share(right, expected)
	s.ExpectedPerItem, s.AnsweredPerItem = share(expected, len(c.sets)), share(answered, len(c.sets))
	s.MicroF1Interval, s.MacroF1Interval = d.intervals()
	return s
}

// F1Interval returns the interval of Report.MacroF1 over results with one label each, like that of Sets.
func (c *Counter) F1Interval(results []outcome.Result) Interval {
	var d draws
	for _, r := range results {
		if !Scored(r) {
			continue
		}
		var item []labelTally
		if !c.Outside(r) {
			item = append(item, labelTally{d.number(r.Expected), tally{support: 1}})
		}
		if r.Failure == nil && r.Answer != "" {
			one := labelTally{d.number(r.Answer), tally{answered: 1}}
			if c.Right(r) { // in a tree, the answer may be above the expected label
				one.right = 1
			}
			item = append(item, one)
		}
		d.items = append(d.items, item)
	}
	_, macro := d.intervals()
	return macro
}

// draws draws samples of items, for the intervals of their F1.
type draws struct {
	numbers map[string]int // of labels
	items   [][]labelTally
}

// labelTally is the contribution of an item to the tally of a label.
type labelTally struct {
	label int
	tally
}

func (d *draws) number(label string) int {
	if d.numbers == nil {
		d.numbers = map[string]int{}
	}
	n, ok := d.numbers[label]
	if !ok {
		n = len(d.numbers)
		d.numbers[label] = n
	}
	return n
}

// Numbers of samples. Many items get fewer samples, because their F1 varies less.
const (
	resamples      = 1000
	leastResamples = 100
	mostDrawn      = 200_000_000 // items in all
)

// intervals returns the percentiles of the F1 of samples of the items.
func (d *draws) intervals() (micro, macro Interval) {
	random := rand.New(rand.NewPCG(1, uint64(len(d.items)))) // so that the same items get the same intervals
	n := max(leastResamples, min(resamples, mostDrawn/max(len(d.items), 1)))
	micros, macros := make([]float64, n), make([]float64, n)
	for i := range n {
		tallies := make([]tally, len(d.numbers))
		for range d.items {
			for _, one := range d.items[random.IntN(len(d.items))] {
				t := &tallies[one.label]
				t.support, t.answered, t.right = t.support+one.support, t.answered+one.answered, t.right+one.right
			}
		}
		micros[i], macros[i] = f1(tallies)
	}
	return percentiles(micros), percentiles(macros)
}

// f1 returns the F1 of all labels together, and the mean F1 of the labels that occur.
func f1(tallies []tally) (micro, macro float64) {
	var all tally
	labels := 0
	for _, t := range tallies {
		if t.support+t.answered > 0 {
			labels++
			macro += share(2*t.right, t.support+t.answered)
		}
		all.right, all.support, all.answered = all.right+t.right, all.support+t.support, all.answered+t.answered
	}
	return share(2*all.right, all.support+all.answered), macro / float64(max(labels, 1))
}

// percentiles returns the interval that contains the central 95 % of the values.
func percentiles(values []float64) Interval {
	slices.Sort(values)
	return Interval{Low: values[len(values)*25/1000], High: values[len(values)*975/1000]}
}
