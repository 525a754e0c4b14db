package tune

import (
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Subject describes what can be tuned in a pipeline.
type Subject struct {
	Variable string // the threshold; empty: no rule reads a threshold
	Weights  string // the variable with weights that the election learns, or with the voters' accuracies; empty: none
	Argument string // argument of the election that reads Weights: weights or accuracy
	Learns   bool   // the election finds its weights itself, from votes on labelled rows
	// More has the variables of an election's other learned arguments, by argument: tune writes
	// their values, too.
	More map[string]string

	doubts map[string]doubt   // by stage
	values map[string]float64 // of the variables of all thresholds
}

// doubt is a when rule that sends only doubtful items to a stage.
type doubt struct {
	signal    string // margin or agreement
	inclusive bool
	variable  string
}

var (
	doubtRule = support.Pattern(`^\s*(margin|agreement)\s*(<=?)\s*var\.(\w+)\s*$`)
	reference = support.Pattern(`^\s*[\w-]+\s*=\s*var\.([\w-]+)\s*$`)
)

// Find finds what can be tuned. If there are several thresholds, variable selects one.
func Find(f *pipeline.File, p *pipeline.Pipeline, variable string) (Subject, hcl.Diagnostics) {
	s := Subject{doubts: map[string]doubt{}, values: map[string]float64{}}
	var names []string
	var missed hcl.Diagnostics
	for _, stage := range p.Stages {
		if !stage.Enabled || stage.Block != "sample" {
			continue
		}
		d, ok := readDoubt(stage.When)
		if !ok {
			missed = append(missed, advise(stage)...)
			continue
		}
		s.doubts[stage.Name] = d
		s.values[d.variable], _ = strconv.ParseFloat(valueOf(f, d.variable), 64) // the rule was checked: the value is a number
		if !slices.Contains(names, d.variable) {
			names = append(names, d.variable)
		}
	}
	s.findWeights(f, p)
	switch {
	case variable != "" && !slices.Contains(names, variable):
		return s, bounded.ErrorAt(p.Range, "Nothing to tune", "No when rule of an enabled sample stage compares margin or agreement with var.%s.%s",
			variable, rule.DidYouMean(variable, names))
	case variable != "":
		s.Variable = variable
	case len(names) > 1:
		return s, bounded.ErrorAt(p.Range, "Several thresholds", "One threshold is found at a time: choose one of %s. Values found so far are given in a file of variables.", strings.Join(names, ", "))
	case len(names) == 1:
		s.Variable = names[0]
	case s.Weights == "":
		return s, append(missed, bounded.ErrorAt(p.Range, "Nothing to tune",
			`tune finds the value of x in a rule such as when = "margin < var.x" of a sample stage, and of y in accuracy = var.y in the config of the election, or in weights = var.y where the election learns them. This pipeline has neither. racflow eval --sweep tries values of any argument.`)...)
	}
	return s, nil
}

// Nothing reports whether the pipeline has neither a threshold nor weights to find.
func (s *Subject) Nothing() bool { return s.Variable == "" && s.Weights == "" && len(s.values) == 0 }

// Now returns the file's value of the threshold.
func (s *Subject) Now() float64 { return s.values[s.Variable] }

// Compares reports whether a when rule compares with a variable.
func (s *Subject) Compares(variable string) bool {
	_, ok := s.values[variable]
	return ok
}

func readDoubt(r *rule.Rule) (doubt, bool) {
	if r == nil {
		return doubt{}, false
	}
	m := doubtRule().FindStringSubmatch(r.Text())
	if m == nil {
		return doubt{}, false
	}
	return doubt{signal: m[1], inclusive: m[2] == "<=", variable: m[3]}, true
}

// advise reports how the rule of a network stage must change so that tune can find its threshold.
func advise(s *pipeline.Stage) hcl.Diagnostics {
	if !s.Info.Network {
		return nil
	}
	return bounded.ErrorAt(s.Range, "No threshold", `No rule of sample.%s compares with a variable alone. With when = "margin < var.margin_below", and a variable "margin_below" { default = 0.1 }, it is asked about the doubtful items only, and tune finds which are.`, s.Name)
}

// findWeights finds the variables that set the voters' weights in an enabled election.
func (s *Subject) findWeights(f *pipeline.File, p *pipeline.Pipeline) {
	for _, stage := range p.Stages {
		if !stage.Enabled || stage.Block != "elect" {
			continue
		}
		variables := map[string]string{} // by argument
		for name, at := range stage.Config.Ranges {
			src := f.Sources[at.Filename]
			if src == nil || !at.CanSliceBytes(src.Bytes) {
				continue
			}
			if m := reference().FindSubmatch(at.SliceBytes(src.Bytes)); m != nil {
				variables[name] = string(m[1])
			}
		}
		learns := stage.Info.Fits && stage.Info.FitReads.Has(sdk.ColumnSamples)
		if variable, ok := variables["weights"]; ok && learns {
			delete(variables, "weights")
			s.Weights, s.Argument, s.Learns, s.More = variable, "weights", true, variables
		} else if variable, ok := variables["accuracy"]; ok && !learns {
			s.Weights, s.Argument = variable, "accuracy"
		}
	}
}

// Everything returns overrides that make every threshold send all items.
func (s *Subject) Everything() []pipeline.Override {
	var all []pipeline.Override
	for name := range s.values {
		// No margin or agreement is above 1.
		all = append(all, pipeline.Override{Target: "var." + name, Value: "2"})
	}
	return all
}

// asks reports whether a stage is asked about an item when the tuned variable has the value at.
func (s *Subject) asks(stage string, margin, agreement, at float64) bool {
	d, ok := s.doubts[stage]
	if !ok {
		return true
	}
	if d.variable != s.Variable {
		at = s.values[d.variable]
	}
	return d.holds(margin, agreement, at)
}

func (d doubt) holds(margin, agreement, at float64) bool {
	signal := d.of(margin, agreement)
	return signal < at || d.inclusive && signal == at
}

func (d doubt) of(margin, agreement float64) float64 {
	if d.signal == "agreement" {
		return agreement
	}
	return margin
}

// valueOf returns the value of a variable of a file.
func valueOf(f *pipeline.File, name string) string {
	for _, v := range f.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// Options say what to tune for.
type Options struct {
	Goal      Goal
	Folds     int    // parts of the items, each held out once; at least 2
	Threshold string // the variable to find, if the file has several thresholds
	// Promise is the goal for the flag rule's threshold (flagging.go); nil: the threshold stays.
	Promise *eval.PromiseGoal
	Rows    int // how many rows of the knowledge replace the input; 0: none
}

// Task is one tuning: its subject, its data and its goal.
type Task struct {
	Subject
	Options
	// Results are of labelled items, from a run that asked every voter about every item and kept
	// its ballots.
	Results []outcome.Result
	Labels  []string // of the knowledge
	// Election starts the election of that run with the values found; nil: as in the file.
	Election func(context.Context, Found) (*Election, error)
	// Fit fits an election that learns (Subject.Learns) on labelled rows with their votes, and
	// returns the arguments that it resolved.
	Fit func(context.Context, iter.Seq2[[]sdk.TrainingRow, error]) (Found, error)
	// Cost prices a stage's samples; nil: they are free.
	Cost     func(stage string, u sdk.Usage) float64
	Progress func(doing string, done, total int) // may be nil
}

// Outcome is the result of tuning. Shares are between 0 and 1.
type Outcome struct {
	Items, Folds int
	Threshold    float64
	Found        Found // weights that replace the file's weights; nil: the file's weights stay
	// These differences compare weights found on other rows with the weights of the file. Gain compares
	// accuracies: with everything sent or, for a cascade, the mean over everything and nothing sent.
	// Sure compares the confidences of the answers, by their log score; it is zero if the election
	// gives none. Known compares the probabilities that no label fits, by the Brier score; it is zero
	// if all items are in scope.
	Gain, Sure, Known Difference
	Curve             []Point // on held-out items; by rising share
	Chosen            int     // index in Curve
	// Choice measures each fold with values tuned on the other rows, including the choice of the
	// threshold. Against compares Choice with sending everything.
	Choice  Point
	Against Difference
	// Present measures the file's threshold. Without a goal, Better compares Choice with Present,
	// and Stays means that the file's threshold stays, because no other is better by more than
	// chance.
	Present Point
	Better  Difference
	Stays   bool
	// Fitted and Plain are the accuracies with everything sent: Fitted with weights found on other
	// rows, Plain with the weights of the file.
	Fitted, Plain float64
}

// steps is the number of equal shares between the points of the curve.
const steps = 20

// Run tunes.
func (t *Task) Run(ctx context.Context) (Outcome, error) {
	texts := make([]string, len(t.Results))
	for i, r := range t.Results {
		texts[i] = r.Text
	}
	folds, err := SplitFolds(texts, t.Folds)
	if err != nil {
		return Outcome{}, err
	}
	w := &work{Task: t, folds: folds, all: folds.all(), counter: eval.NewCounter(t.Labels...)}
	if err := w.begin(ctx); err != nil {
		return Outcome{}, err
	}
	shares := w.shares()
	o := Outcome{Items: len(w.all), Folds: t.Folds}
	elections, err := w.weigh(ctx, &o)
	if err != nil {
		return o, err
	}
	cells := make([][]cell, len(shares)) // by share and item
	for k := range cells {
		cells[k] = make([]cell, len(w.all))
	}
	present, choice := make([]cell, len(w.all)), make([]cell, len(w.all))
	for f := range t.Folds {
		w.progress("drawing the curve", f, t.Folds)
		train, test := w.folds.Of(f)
		for k, share := range shares {
			if err := w.measure(ctx, elections[f], test, w.threshold(train, share), cells[k]); err != nil {
				return o, err
			}
		}
		if err := w.measure(ctx, elections[f], test, w.Now(), present); err != nil {
			return o, err
		}
	}
	o.Curve = curve(cells, w.all)
	if o.Chosen, err = t.Goal.choose(o.Curve); err != nil {
		return o, err
	}
	for f := range t.Folds {
		train, test := w.folds.Of(f)
		k, err := t.Goal.choose(curve(cells, train))
		if err != nil {
			k = o.Chosen // no threshold meets the goal on the other folds
		}
		for _, i := range test {
			choice[i] = cells[k][i]
		}
	}
	o.Choice, o.Present = point(choice, w.all), point(present, w.all)
	o.Threshold = w.threshold(w.all, shares[o.Chosen])
	o.Against = w.folds.Compare(o.Curve[len(o.Curve)-1].right, o.Choice.right)
	o.Better = w.folds.Compare(o.Present.right, o.Choice.right)
	if o.Stays = t.Goal == (Goal{}) && w.Variable != "" && !o.Better.Better(); o.Stays {
		o.Threshold = w.Now()
	}
	return o, nil
}

// Hold returns the results of other items of the run under the values found.
func (t *Task) Hold(ctx context.Context, o Outcome, results []outcome.Result) ([]outcome.Result, error) {
	election, err := t.Election(ctx, o.Found)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseFloat(format(o.Threshold), 64) // as in the file of variables
	if err != nil {
		return nil, err
	}
	held, err := election.Elect(ctx, results, func(a AskRule) bool {
		return t.asks(a.Stage.Name, a.Margin, a.Agreement, at)
	})
	for i := range held {
		held[i].Missing = results[i].Missing
	}
	return held, err
}

// keeps reports whether found weights replace the weights of the file. Counting right answers shows
// little: on 600 items, a gain of one point may be chance. Confidences show more, so they decide unless
// fewer answers are right. Items out of scope decide, too, unless certainly fewer answers are right.
func (o *Outcome) keeps() bool {
	return o.Gain.Better() || o.Gain.Mean >= 0 && o.Sure.Better() || o.Gain.High >= 0 && o.Known.Better()
}

// weigh finds weights for each fold on the other folds. If these weights are worth keeping, it also
// finds weights on all items. It returns the election of each fold.
func (w *work) weigh(ctx context.Context, o *Outcome) ([]*Election, error) {
	plain, fitted := slices.Repeat([]*Election{w.plain}, w.Folds), make([]*Election, w.Folds)
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
	o.Gain = w.folds.Compare(before.means(score.accuracy), after.means(score.accuracy))
	o.Sure = difference(before.means(w.logScore), after.means(w.logScore), 1)
	if slices.ContainsFunc(w.Results, w.counter.Outside) {
		o.Known = difference(before.means(score.scope), after.means(score.scope), 1)
	}
	if !o.keeps() {
		return plain, nil
	}
	o.Found, err = w.fit(ctx, w.all)
	return fitted, err
}

// shares returns the shares of items to send that are tried.
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

// threshold returns the value that sends a share of these items.
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

// work is a task in progress.
type work struct {
	*Task
	folds   Folds
	all     []int // the items
	counter *eval.Counter
	plain   *Election // with the weights of the file
	// kinds are the elections that the weights must suit, as rules which voters are asked: everything is
	// sent and, if a threshold is tuned, nothing is sent, because a cascade holds both elections.
	kinds   []func(AskRule) bool
	signals [][]float64    // by item: values that the tuned variable is compared with
	samples [][]sdk.Sample // by item: samples for an election that learns
}

// begin starts the election with the weights of the file.
func (w *work) begin(ctx context.Context) (err error) {
	if w.plain, err = w.Election(ctx, nil); err != nil {
		return err
	}
	w.signals = make([][]float64, len(w.Results))
	_, err = w.plain.Elect(ctx, w.Results, func(a AskRule) bool {
		if d, ok := w.doubts[a.Stage.Name]; ok && d.variable == w.Variable {
			w.signals[a.Item] = append(w.signals[a.Item], d.of(a.Margin, a.Agreement))
		}
		return true
	})
	if err != nil {
		return err
	}
	w.kinds = append(w.kinds, func(AskRule) bool { return true })
	if w.Variable != "" {
		w.kinds = append(w.kinds, func(a AskRule) bool { return w.asks(a.Stage.Name, a.Margin, a.Agreement, -1) })
	}
	if w.Learns {
		w.samples, err = w.plain.samples(ctx, w.Results)
	}
	return err
}

// scores are the results of elections, for each item and kind of election.
type scores [][]score

// score holds whether an answer is right, and its confidence; 0: the election gives none.
type score struct {
	right      bool
	confidence float64
	outside    bool
	unknown    float64
}

func (s score) accuracy() float64 {
	if s.right {
		return 1
	}
	return 0
}

// least is the probability below which logScore gets no lower.
const least = 1e-6

// logScore scores a confidence by the logarithm of the probability of the truth, from 0 for least
// to 1 for certainty (Good, "Rational decisions", Journal of the Royal Statistical Society B
// 14:107-114, 1952). The labels that were not elected share the rest of the probability. The score
// is 0 without a confidence.
func (w *work) logScore(s score) float64 {
	p := s.confidence
	switch {
	case p == 0:
		return 0
	case !s.right:
		p = (1 - p) / float64(max(len(w.Labels)-1, 1))
	}
	return 1 - math.Log(max(p, least))/math.Log(least)
}

// scope returns 1 minus the Brier score of the probability that no label fits.
func (s score) scope() float64 {
	off := s.unknown
	if s.outside {
		off = 1 - off
	}
	return 1 - off*off
}

// score holds elections of all kinds over some items.
func (w *work) score(ctx context.Context, e *Election, items []int) (scores, error) {
	all := make(scores, len(items))
	for _, asked := range w.kinds {
		results, err := e.Elect(ctx, w.pick(items), asked)
		if err != nil {
			return nil, err
		}
		for n, r := range results {
			all[n] = append(all[n], score{w.counter.Right(r), r.Confidence, w.counter.Outside(r), r.Unknown})
		}
	}
	return all, nil
}

// means returns, for each item, the mean over the kinds.
func (s scores) means(of func(score) float64) []float64 {
	all := make([]float64, len(s))
	for i, kinds := range s {
		for _, k := range kinds {
			all[i] += of(k) / float64(len(kinds))
		}
	}
	return all
}

// sent returns the accuracy with everything sent.
func (s scores) sent() float64 {
	n := 0.0
	for _, kinds := range s {
		n += kinds[0].accuracy()
	}
	return n / float64(max(len(s), 1))
}

func (w *work) progress(doing string, done, total int) {
	if w.Progress != nil {
		w.Progress(doing, done, total)
	}
}
