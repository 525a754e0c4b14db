package tune

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/promise"
	"github.com/racflow/racflow/engine/reelect"
	"github.com/racflow/racflow/engine/tune/crossval"
	"github.com/racflow/racflow/engine/tune/values"
	"github.com/racflow/racflow/sdk"
)

// Options say what tuning is for.
type Options struct {
	Goal      Goal
	Folds     int           // parts of the items, each of which is held out once; at least 2
	Threshold string        // the variable to find, where the file has several thresholds
	Over      []eval.Target // arguments and variables whose values are tried; nil: those that cost nothing
	Metric    values.Metric // by which they are chosen
	// Promise is for the threshold of the flag rule (package flagging); nil: it stays.
	Promise *promise.Goal
	Calls   int // how many rows of the knowledge take the place of the input; 0: none
}

// Task is what is tuned, on what, and for what.
type Task struct {
	Subject
	Options
	// Results are of items with labels, of a run in which every voter was asked
	// about every item and which kept its ballots.
	Results []outcome.Result
	Labels  []string // of the knowledge
	// Election starts the election of that run with what was found; nil: as the file has
	// it.
	Election func(context.Context, Found) (*reelect.Election, error)
	// Fit fits an election that learns (Subject.Learns) on rows with labels and the
	// votes on them, and returns what it has resolved.
	Fit func(context.Context, iter.Seq2[[]sdk.TrainingRow, error]) (Found, error)
	// Cost is what a stage's samples cost; nil: nothing.
	Cost     func(stage string, u sdk.Usage) float64
	Progress func(doing string, done, total int) // may be nil
}

// Outcome is what was found. Shares are between 0 and 1.
type Outcome struct {
	Items, Folds int
	Threshold    float64
	Found        Found // weights that replace those of the file; nil: those stay
	// Gain is what weights that were found on other rows are worth against those of the
	// file: of a cascade on average of everything and nothing sent, else with everything.
	Gain   crossval.Difference
	Cut    bool    // the search for weights came to the end of its budget
	Curve  []Point // held out; by rising share
	Chosen int     // in Curve
	// Choice is what tuning on other rows was worth on the rows of each fold,
	// the choice of the threshold included. Against compares it with everything sent.
	Choice  Point
	Against crossval.Difference
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
	folds, err := crossval.Split(texts, t.Folds)
	if err != nil {
		return Outcome{}, err
	}
	w := &work{Task: t, folds: folds, all: folds.All(), counter: eval.NewCounter(t.Labels...)}
	if err := w.begin(ctx); err != nil {
		return Outcome{}, err
	}
	shares := w.shares()
	o := Outcome{Items: len(w.all), Folds: t.Folds}
	elections, err := w.weigh(ctx, &o)
	if err != nil {
		return o, err
	}
	sums := make([][]sum, t.Folds) // by fold and share
	for f := range t.Folds {
		w.progress("drawing the curve", f, t.Folds)
		train, test := w.folds.Of(f)
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
	o.Against = w.folds.Compare(o.Curve[len(o.Curve)-1].right, o.Choice.right)
	o.Threshold = w.threshold(w.all, shares[o.Chosen])
	return o, nil
}

// Hold returns what becomes of other items of the run with the values that were found.
func (t *Task) Hold(ctx context.Context, o Outcome, results []outcome.Result) ([]outcome.Result, error) {
	election, err := t.Election(ctx, o.Found)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseFloat(format(o.Threshold), 64) // as the file of variables will have it
	if err != nil {
		return nil, err
	}
	held, err := election.Elect(ctx, results, func(a reelect.Ask) bool {
		return t.asks(a.Stage.Name, a.Margin, a.Agreement, at)
	})
	for i := range held {
		held[i].Missing = results[i].Missing
	}
	return held, err
}

// weigh finds weights for each fold on the others and, where they are better there than
// those of the file by more than chance, on all items. It returns the election of each
// fold.
func (w *work) weigh(ctx context.Context, o *Outcome) ([]*reelect.Election, error) {
	plain, fitted := slices.Repeat([]*reelect.Election{w.plain}, w.Folds), make([]*reelect.Election, w.Folds)
	before, err := w.score(ctx, w.plain, w.all)
	if err != nil {
		return nil, err
	}
	o.Plain = before.sent()
	o.Fitted = o.Plain
	if w.Weights == "" {
		return plain, nil
	}
	after := make(scores, len(w.all))
	for f := range w.Folds {
		train, test := w.folds.Of(f)
		of, err := w.fit(ctx, train)
		if err != nil {
			return nil, err
		}
		if fitted[f], err = w.Election(ctx, of); err != nil {
			return nil, err
		}
		found, err := w.score(ctx, fitted[f], test)
		if err != nil {
			return nil, err
		}
		for n, i := range test {
			after[i] = found[n]
		}
	}
	o.Fitted = after.sent()
	o.Gain = w.folds.Compare(before.means(), after.means())
	o.Cut = w.search != nil && w.search.Exhausted()
	if !o.Gain.Better() {
		return plain, nil
	}
	o.Found, err = w.fit(ctx, w.all)
	return fitted, err
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
