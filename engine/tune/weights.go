package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
)

// election starts the election with these weights; nil: as the file has them.
func (w *work) election(ctx context.Context, weights map[string]float64) (*reelect.Election, error) {
	if weights == nil {
		return w.plain, nil
	}
	var fields []string
	for _, v := range w.Voters {
		if weight, ok := weights[v]; ok {
			fields = append(fields, v+" = "+format(weight))
		}
	}
	return w.Elections(ctx, []pipeline.Override{{Target: "var." + w.Weights, Value: "{ " + strings.Join(fields, ", ") + " }"}})
}

// fit finds on some items how much the voters count; nil: nothing is asked
// for.
func (w *work) fit(ctx context.Context, items []int) (map[string]float64, error) {
	switch {
	case w.Weights == "":
		return nil, nil
	case w.Argument == "accuracy":
		return w.accuracies(items), nil
	}
	return w.climb(ctx, items)
}

// accuracies is how often each voter's own answer is right, of the items that
// it gave an acceptable one to: (right + 1) / (answered + 2), Laplace's rule of
// succession, so that few items make nobody infallible.
func (w *work) accuracies(items []int) map[string]float64 {
	c := eval.NewCounter(w.Labels...)
	for _, i := range items {
		c.Add(w.Results[i])
	}
	all := map[string]float64{}
	for _, v := range c.Report(outcome.Totals{}).Voters {
		n := float64(len(items)) // all have a label
		if v.Accepted > 0 {
			all[v.Name] = math.Round(1e4*(v.Accuracy*n+1)/(v.Accepted*n+2)) / 1e4
		}
	}
	return all
}

// The search for weights doubles and halves one voter's at a time, from 1 for
// all, as long as that gains more than chance easily gives.
const (
	least    = 1. / 8
	most     = 8.
	gainEach = 0.005 // of the items, per step
)

// climb finds weights by coordinate ascent on worth: a cascade holds elections
// of both kinds.
func (w *work) climb(ctx context.Context, items []int) (map[string]float64, error) {
	weights := map[string]float64{}
	for _, v := range w.Voters {
		weights[v] = 1
	}
	worth := func() (int, error) {
		election, err := w.election(ctx, weights)
		if err != nil {
			return 0, err
		}
		both, _, err := w.worth(ctx, election, items)
		return both, err
	}
	now, err := worth()
	if err != nil {
		return nil, err
	}
	step := max(1, int(gainEach*float64(len(items))))
	for improved := true; improved; {
		improved = false
		for _, v := range w.Voters {
			for _, factor := range []float64{2, .5} {
				for {
					before := weights[v]
					if weights[v] = before * factor; weights[v] < least || weights[v] > most {
						weights[v] = before
						break
					}
					next, err := worth()
					if err != nil {
						return nil, err
					}
					if next < now+step {
						weights[v] = before
						break
					}
					now, improved = next, true
				}
			}
		}
	}
	return weights, nil
}

// worth counts the right answers with everything sent and with nothing sent,
// together, and the former alone.
func (w *work) worth(ctx context.Context, election *reelect.Election, items []int) (both, sent int, err error) {
	sent, err = w.right(ctx, election, items, everything)
	if err != nil || w.Variable == "" {
		return sent, sent, err
	}
	none, err := w.right(ctx, election, items, func(a reelect.Ask) bool { return w.asks(a.Stage.Name, a.Margin, a.Agreement, -1) })
	return sent + none, sent, err
}

func format(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// Variables is a file of variables with what was found, as -var-file reads it.
// input is the name of the file that it was found on, digest its SHA-256.
func (s *Subject) Variables(o Outcome, input, digest string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by racflow tune, for -var-file. Measure on other rows than these:\n%s%s, %d items of %q\n", mark, digest, o.Items, input)
	if s.Variable != "" {
		fmt.Fprintf(&b, "%s = %s\n", s.Variable, format(o.Threshold))
	}
	if o.Weights != nil {
		fmt.Fprintf(&b, "%s = {\n", s.Weights)
		for _, v := range slices.Sorted(slices.Values(s.Voters)) {
			if weight, ok := o.Weights[v]; ok {
				fmt.Fprintf(&b, "%s = %s\n", v, format(weight))
			}
		}
		fmt.Fprintf(&b, "}\n")
	}
	return string(bounded.Format([]byte(b.String())))
}
