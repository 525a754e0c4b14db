package tune

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/sdk"
)

// Options say what tuning is for.
type Options struct {
	Goal      Goal
	Folds     int    // parts of the items, each of which is held out once; at least 2
	Threshold string // the variable to find, where the file has several thresholds
}

// Task is what is tuned, on what, and for what.
type Task struct {
	Subject
	Options
	// Results are of items with labels, of a run in which every voter was asked
	// about every item and which kept its ballots.
	Results []outcome.Result
	Labels  []string // of the knowledge
	// Elections starts the election with values of variables.
	Elections func(context.Context, []pipeline.Override) (*reelect.Election, error)
	// Cost is what a stage's samples cost; nil: nothing.
	Cost func(stage string, u sdk.Usage) float64
}

// Outcome is what was found. Shares are between 0 and 1.
type Outcome struct {
	Items, Folds int
	Threshold    float64
	Weights      map[string]float64 // nil: those of the file stay
	Curve        []Point            // held out; by rising share
	Chosen       int                // in Curve
	// Choice is what tuning on other rows was worth on the rows of each fold,
	// the choice of the threshold included.
	Choice Point
	// Fitted and Plain are the accuracies with everything sent: with weights that
	// were found on other rows, and with those of the file.
	Fitted, Plain float64
}

// steps is how many equal shares the curve is drawn in.
const steps = 20

// Run tunes.
func (t *Task) Run(ctx context.Context) (Outcome, error) {
	texts := make([]string, len(t.Results))
	for i, r := range t.Results {
		texts[i] = r.Text
	}
	if err := Check(texts, t.Folds); err != nil {
		return Outcome{}, err
	}
	w := &work{Task: t, counter: eval.NewCounter(t.Labels...)}
	all := make([]int, len(t.Results))
	for i := range all {
		all[i] = i
	}
	if err := w.measureSignals(ctx); err != nil {
		return Outcome{}, err
	}
	shares := w.shares()
	o := Outcome{Items: len(all), Folds: t.Folds}
	elections, err := w.weigh(ctx, &o)
	if err != nil {
		return o, err
	}
	sums := make([][]sum, t.Folds) // by fold and share
	for f := range t.Folds {
		train, test := w.split(f)
		if sums[f], err = w.points(ctx, elections[f], train, test, shares); err != nil {
			return o, err
		}
	}
	o.Curve = curve(sums, -1)
	if o.Chosen, err = t.Goal.choose(o.Curve); err != nil {
		return o, err
	}
	var choice sum
	for f := range t.Folds {
		k, err := t.Goal.choose(curve(sums, f))
		if err != nil {
			k = o.Chosen // the other folds alone do not reach the goal
		}
		choice = choice.add(sums[f][k])
	}
	o.Choice = choice.point(t.Folds)
	o.Threshold = w.threshold(all, shares[o.Chosen])
	return o, nil
}

// weigh finds weights for each fold on the others and, where they are worth
// more there than those of the file, on all items. It returns the election of
// each fold.
func (w *work) weigh(ctx context.Context, o *Outcome) ([]*reelect.Election, error) {
	plain, fitted := make([]*reelect.Election, w.Folds), make([]*reelect.Election, w.Folds)
	var all []int
	gain, plainRight, fittedRight := 0, 0, 0
	for f := range w.Folds {
		train, test := w.split(f)
		all = append(all, test...)
		weights, err := w.fit(ctx, train)
		if err != nil {
			return nil, err
		}
		plain[f] = w.plain
		if fitted[f], err = w.election(ctx, weights); err != nil {
			return nil, err
		}
		before, sent, err := w.worth(ctx, w.plain, test)
		if err != nil {
			return nil, err
		}
		after, sentAfter, err := w.worth(ctx, fitted[f], test)
		if err != nil {
			return nil, err
		}
		gain, plainRight, fittedRight = gain+after-before, plainRight+sent, fittedRight+sentAfter
	}
	o.Plain, o.Fitted = float64(plainRight)/float64(o.Items), float64(fittedRight)/float64(o.Items)
	if gain <= 0 {
		return plain, nil
	}
	slices.Sort(all)
	var err error
	o.Weights, err = w.fit(ctx, all)
	return fitted, err
}

// work is a task that is under way.
type work struct {
	*Task
	counter *eval.Counter
	plain   *reelect.Election
	signals [][]float64 // by item: what the tuned variable is compared with
}

// measureSignals holds the elections with everything asked, and the weights as
// the file has them.
func (w *work) measureSignals(ctx context.Context) (err error) {
	if w.plain, err = w.Elections(ctx, nil); err != nil {
		return err
	}
	w.signals = make([][]float64, len(w.Results))
	_, err = w.plain.Elect(ctx, w.Results, func(a reelect.Ask) bool {
		if d, ok := w.doubts[a.Stage.Name]; ok && d.variable == w.Variable {
			w.signals[a.Item] = append(w.signals[a.Item], d.of(a.Margin, a.Agreement))
		}
		return true
	})
	return err
}

// shares are the shares of items to send that are tried.
func (w *work) shares() []float64 {
	if w.Variable == "" {
		return []float64{1}
	}
	all := make([]float64, steps+1)
	for i := range all {
		all[i] = float64(i) / steps
	}
	return all
}

// threshold is the value with which a share of these items is sent.
func (w *work) threshold(items []int, share float64) float64 {
	var signals []float64
	for _, i := range items {
		signals = append(signals, w.signals[i]...)
	}
	slices.Sort(signals)
	n := int(share*float64(len(signals)) + .5)
	switch {
	case n <= 0:
		return -.01 // below every margin, also for a rule with <=
	case n >= len(signals):
		return 1.01
	}
	return (signals[n-1] + signals[n]) / 2
}

// right counts the items that are answered rightly.
func (w *work) right(ctx context.Context, election *reelect.Election, items []int, asked func(reelect.Ask) bool) (int, error) {
	results, err := election.Elect(ctx, w.pick(items), asked)
	n := 0
	for _, r := range results {
		if w.counter.Right(r) {
			n++
		}
	}
	return n, err
}

func everything(reelect.Ask) bool { return true }
