package expect

import (
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/interval"
)

// How often items are drawn for the interval of f1, and how many draws of single items that is
// at most.
const (
	draws     = 1000
	mostDrawn = 200_000_000
	fewest    = 100
)

// f1 is the mean F1 of the labels that were expected or answered, those out of scope aside, as
// package eval has it.
func (m *measurement) f1() Figure {
	if m.report.Scored == 0 {
		return impossible(noLabels)
	}
	var items []pair
	number := map[string]int{}
	of := func(label string) int {
		n, ok := number[label]
		if !ok {
			n = len(number)
			number[label] = n
		}
		return n
	}
	for _, r := range m.results {
		if !eval.Scored(r) {
			continue
		}
		one := pair{-1, -1}
		if !m.counter.Outside(r) {
			one.expected = of(r.Expected)
		}
		if r.Failure == nil && r.Answer != "" {
			one.answered = of(r.Answer)
		}
		items = append(items, one)
	}
	return Figure{Value: m.report.MacroF1, Interval: new(bootstrap(items, len(number)))}
}

// pair is an item by the numbers of its labels; -1: none.
type pair struct{ expected, answered int }

// bootstrap is the middle of the F1 of items that are drawn from these.
func bootstrap(items []pair, labels int) interval.Interval {
	random := rand.New(rand.NewPCG(1, uint64(len(items)))) //nolint:gosec // the same figures give the same interval
	values := make([]float64, max(fewest, min(draws, mostDrawn/len(items))))
	sample := make([]pair, len(items))
	for i := range values {
		for j := range sample {
			sample[j] = items[random.IntN(len(items))]
		}
		values[i] = macroF1(sample, labels)
	}
	slices.Sort(values)
	tail := (1 - interval.Level) / 2
	return interval.Interval{Low: values[int(tail*float64(len(values)))], High: values[len(values)-1-int(tail*float64(len(values)))]}
}

// macroF1 is the mean F1 of the labels that are expected or answered.
func macroF1(items []pair, labels int) float64 {
	type tally struct{ right, expected, answered int }
	all := make([]tally, labels)
	for _, i := range items {
		if i.expected >= 0 {
			all[i.expected].expected++
		}
		if i.answered >= 0 {
			all[i.answered].answered++
		}
		if i.expected >= 0 && i.expected == i.answered {
			all[i.expected].right++
		}
	}
	sum, seen := 0., 0
	for _, t := range all {
		if t.expected+t.answered > 0 {
			seen++
			sum += 2 * float64(t.right) / float64(t.expected+t.answered)
		}
	}
	if seen == 0 {
		return 0
	}
	return sum / float64(seen)
}
