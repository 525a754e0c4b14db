package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Sets measures answers that are sets of labels. Report.Accuracy is then the subset accuracy: the
// share of the items whose set is right, label by label. Intervals are percentiles of 1,000
// bootstrap samples of the items (Efron 1979).
type Sets struct {
	// MicroF1 is the F1 of all labels of all items together, with its precision and recall; MacroF1
	// the mean of the F1 of each label (Report.MacroF1); ExampleF1 the mean of the F1 of each item.
	MicroF1          float64  `json:"micro_f1"`
	MicroF1Interval  Interval `json:"micro_f1_interval"`
	MacroF1Interval  Interval `json:"macro_f1_interval"`
	ExampleF1        float64  `json:"example_f1"`
	Precision        float64  `json:"micro_precision"`
	Recall           float64  `json:"micro_recall"`
	ExpectedPerItem  float64  `json:"expected_per_item"`
	AnsweredPerItem  float64  `json:"answered_per_item"`
	LabelsOutOfScope int      `json:"labels_out_of_scope,omitempty"` // expected labels that the knowledge does not have
}

// scoredSet is an item with an expected set.
type scoredSet struct{ expected, answered []string }

func (c *Counter) addSet(r outcome.Result) {
	s := scoredSet{expected: r.Form.Split(r.Expected)}
	if r.Failure == nil {
		s.answered = r.Form.Split(r.Answer)
	}
	c.sets = append(c.sets, s)
}

// confuse counts a wrong answer as pairs: of a set, each missed label with each made-up one.
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

// except returns the labels that are not among others.
func except(labels, others []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(others, l) })
}

const resamples = 1000

func (c *Counter) reportSets() *Sets {
	if len(c.sets) == 0 {
		return nil
	}
	number := map[string]int{}
	items := make([][2][]int, len(c.sets))
	s := &Sets{}
	for i, set := range c.sets {
		for side, labels := range [2][]string{set.expected, set.answered} {
			for _, label := range labels {
				if _, ok := number[label]; !ok {
					number[label] = len(number)
				}
				items[i][side] = append(items[i][side], number[label])
				if side == 0 && len(c.known) > 0 && !c.known[label] {
					s.LabelsOutOfScope++
				}
			}
		}
	}
	right, expected, answered := 0, 0, 0
	for _, item := range items {
		both := common(item)
		right, expected, answered = right+both, expected+len(item[0]), answered+len(item[1])
		s.ExampleF1 += share(2*both, len(item[0])+len(item[1])) / float64(len(items))
	}
	s.MicroF1, s.Precision, s.Recall = share(2*right, expected+answered), share(right, answered), share(right, expected)
	s.ExpectedPerItem, s.AnsweredPerItem = share(expected, len(items)), share(answered, len(items))
	micro, macro := make([]float64, resamples), make([]float64, resamples)
	random := rand.New(rand.NewPCG(1, uint64(len(items))))
	for n := range resamples {
		tallies := make([]tally, len(number))
		for range items {
			item := items[random.IntN(len(items))]
			for _, l := range item[0] {
				tallies[l].support++
				if slices.Contains(item[1], l) {
					tallies[l].right++
				}
			}
			for _, l := range item[1] {
				tallies[l].answered++
			}
		}
		micro[n], macro[n] = f1(tallies)
	}
	s.MicroF1Interval, s.MacroF1Interval = percentiles(micro), percentiles(macro)
	return s
}

func common(item [2][]int) (n int) {
	for _, l := range item[0] {
		if slices.Contains(item[1], l) {
			n++
		}
	}
	return n
}

// f1 returns the F1 of all labels together, and the mean of those of the labels that occur.
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

// percentiles returns the interval that has 95 % of the values.
func percentiles(values []float64) Interval {
	slices.Sort(values)
	return Interval{Low: values[len(values)*25/1000], High: values[len(values)*975/1000]}
}
