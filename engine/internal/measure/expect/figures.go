package expect

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/sdk"
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

// bootstrap is the range that holds the middle of the F1s of samples drawn from the items.
func bootstrap(items []pair, labels int) eval.Interval {
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
	tail := (1 - eval.IntervalLevel) / 2
	return eval.Interval{Low: values[int(tail*float64(len(values)))], High: values[len(values)-1-int(tail*float64(len(values)))]}
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

// figure measures one figure of a rule. The error says why nothing more can be measured.
func (m *measurement) figure(ctx context.Context, v *engine.Examined, f rule.Figure) (Figure, error) {
	switch f.Name {
	case "accuracy":
		return m.accuracy(), nil
	case "f1":
		return m.f1(), nil
	case "recall", "precision":
		return m.ofLabel(f.Name, f.Args[0].(string)), nil
	case "answered":
		return m.answered(f.Args[0].(float64)), nil
	case "flagged":
		return share(m.report.Flagged, m.report.Items, noItems), nil
	case "failed":
		return share(m.report.Failed, m.report.Items, noItems), nil
	case "cost_per_1000":
		return m.cost(v.Definition()), nil
	case "leaked":
		return leaked(ctx, v)
	case "answer":
		return answer(ctx, v, f.Args[0].(string))
	case "found":
		return found(ctx, v, f.Args)
	}
	if values := m.lists[f.String()]; len(values) > 0 {
		sum := 0.
		for _, value := range values {
			sum += value
		}
		mean := sum / float64(len(values))
		return Figure{Value: mean, Interval: new(eval.MeanInterval(mean, len(values))), Note: fmt.Sprintf("%s, of %d items with gold passages", m.last, len(values))}, nil
	}
	return impossible("no item has gold passages; name the column that holds them with gold = \"...\" in the input block"), nil
}

const (
	noItems  = "the input has no items"
	noLabels = "no item has a label to compare its answer with; name the column that holds them with label = \"...\" in the input block"
)

func impossible(format string, args ...any) Figure {
	return Figure{Error: fmt.Sprintf(format, args...)}
}

// share is a share of items; why is said where there are none.
func share(count, of int, why string) Figure {
	if of == 0 {
		return impossible("%s", why)
	}
	return Figure{Value: float64(count) / float64(of), Interval: new(eval.Wilson(count, of)), Count: count, Of: of}
}

func (m *measurement) accuracy() Figure {
	right := 0
	for _, r := range m.results {
		if eval.Scored(r) && m.counter.Right(r) {
			right++
		}
	}
	return share(right, m.report.Scored, noLabels)
}

// ofLabel is the recall or the precision of a label.
func (m *measurement) ofLabel(which, label string) Figure {
	right, expected, answered := 0, 0, 0
	var labels []string
	for _, r := range m.results {
		if !eval.Scored(r) {
			continue
		}
		labels = append(labels, r.Expected)
		given := r.Failure == nil && r.Answer == label
		if r.Expected == label {
			expected++
		}
		if given {
			answered++
		}
		if given && r.Expected == label && !m.counter.Outside(r) {
			right++
		}
	}
	switch {
	case len(labels) == 0:
		return impossible(noLabels)
	case which == "recall":
		return share(right, expected, fmt.Sprintf("no item has the label %q.%s", label, rule.DidYouMean(label, labels)))
	}
	return share(right, answered, fmt.Sprintf("no item was answered %q.%s", label, rule.DidYouMean(label, labels)))
}

// answered is the share of the items that are answered where an accuracy is promised.
func (m *measurement) answered(accuracy float64) Figure {
	var items []eval.PromiseItem
	for _, r := range m.results {
		if !eval.Scored(r) || r.Failure != nil {
			continue
		}
		confidence := r.Agreement
		if r.Confidence > 0 {
			confidence = r.Confidence
		}
		items = append(items, eval.PromiseItem{Text: r.Text, Confidence: confidence, Answered: r.Answer != "", Right: m.counter.Right(r), Outside: m.counter.Outside(r)})
	}
	if len(items) == 0 {
		return impossible(noLabels)
	}
	p, err := eval.FindPromise(items, eval.PromiseGoal{Accuracy: accuracy, Confidence: eval.IntervalLevel})
	found := share(p.Answered, p.Rows, noLabels)
	if err != nil {
		found.Note = err.Error()
	} else {
		found.Note = fmt.Sprintf("%d of them right, from a confidence of %v on", p.Right, p.Threshold(false))
	}
	return found
}

// cost is what a thousand items cost.
func (m *measurement) cost(p *pipeline.Pipeline) Figure {
	if m.report.Items == 0 {
		return impossible(noItems)
	}
	for i, s := range p.Stages {
		if s.Block == "sample" && p.Used(i) && s.Info.Network && s.Price == nil {
			return impossible("sample.%s has no price: %s", s.Name, pipeline.PriceAdvice)
		}
	}
	return Figure{Value: 1000 * m.report.Cost / float64(m.report.Items), Note: fmt.Sprintf("%.4g for %d items", m.report.Cost, m.report.Items)}
}

// leaked is how many rows of the input the knowledge has.
func leaked(ctx context.Context, v *engine.Examined) (Figure, error) {
	switch v.InputPath() {
	case "":
		return impossible("the pipeline has no input block"), nil
	case "-":
		return impossible("the input is standard input; name a file"), nil
	}
	some, count, err := v.Leaked(ctx)
	switch {
	case ctx.Err() != nil:
		return Figure{}, ctx.Err()
	case err != nil:
		return impossible("%v", err), nil
	}
	f := Figure{Value: float64(count)}
	var places []string
	for _, p := range some {
		places = append(places, fmt.Sprintf("line %d %s", p.Line, p.Note))
	}
	f.Note = strings.Join(places, "; ")
	return f, nil
}

// answer is what the pipeline answers to a text.
func answer(ctx context.Context, v *engine.Examined, text string) (Figure, error) {
	r, err := v.Answer(ctx, engine.Item{Text: text})
	if failed := r.Error; failed != nil {
		return impossible("%v", failed), nil
	}
	if err != nil {
		return Figure{}, err
	}
	f := Figure{Value: string(r.Answer)}
	switch {
	case r.Confidence > 0:
		f.Note = fmt.Sprintf("with a confidence of %.2f", r.Confidence)
	case r.Answer == "":
		f.Note = r.Reason
	}
	return f, nil
}

// amongFirst is how many candidates a passage has to be among where the rule does not say.
const amongFirst = 20

// found is whether a passage is among the first that are found for a question.
func found(ctx context.Context, v *engine.Examined, args []any) (Figure, error) {
	question, passage, k := args[0].(string), args[1].(string), amongFirst
	if len(args) > 2 {
		k = whole(args[2])
	}
	is := passageOf(passage)
	list, err := v.Retrieve(ctx, engine.Item{Text: question})
	switch {
	case ctx.Err() != nil || sdk.CodeOf(err) == sdk.CodeStopped:
		return Figure{}, err
	case err != nil:
		return impossible("%v", err), nil
	}
	for i, c := range list {
		if is(c) {
			return Figure{Value: i < k, Note: fmt.Sprintf("rank %d of %d: %s", i+1, len(list), c.ID)}, nil
		}
	}
	f := Figure{Value: false, Note: fmt.Sprintf("it is not among the %d that are found", len(list))}
	if len(list) > 0 {
		f.Note += "; the first is " + list[0].ID
	}
	return f, nil
}

// passageOf reads which passage is meant: an id or a path, a path with a quote as in
// guide.md"the port is 8080", or, where there is white space, words that it holds.
func passageOf(text string) (is func(engine.Candidate) bool) {
	path, quote, ok := strings.Cut(text, `"`)
	if quote, closed := strings.CutSuffix(quote, `"`); ok && closed && path != "" && len(strings.Fields(path)) == 1 {
		return func(c engine.Candidate) bool {
			return isAt(c, path) && strings.Contains(spaced(c.Text), spaced(quote))
		}
	}
	words := spaced(text)
	return func(c engine.Candidate) bool {
		return isAt(c, text) || strings.Contains(words, " ") && strings.Contains(spaced(c.Text), words)
	}
}

// isAt reports whether a candidate is an entry, or stands in a document, of a path or of one that
// ends so.
func isAt(c engine.Candidate, path string) bool {
	path = strings.TrimPrefix(path, "/")
	for _, at := range []any{c.ID, c.Meta["document"], c.Meta["path"]} {
		if at, ok := at.(string); ok && (at == path || strings.HasSuffix(at, "/"+path)) {
			return true
		}
	}
	return false
}

// spaced has one space for each piece of white space.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// Report is what became of the expectations of a pipeline.
type Report struct {
	File     string    `json:"file"`
	Pipeline string    `json:"pipeline"`
	Verdicts []Verdict `json:"expects"` // in file order
	Baseline *Baseline `json:"baseline,omitempty"`
	// Incomplete says that items or rows failed in what was measured.
	Incomplete bool `json:"incomplete"`
}

// Holds reports whether all that was tested holds, and the pipeline is not worse than its
// baseline.
func (r *Report) Holds() bool {
	return r.Count(Fails) == 0 && (r.Baseline == nil || !r.Baseline.Worse)
}

// Count is how many expectations have come to an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, v := range r.Verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// Outcome is what an expectation comes to.
type Outcome string

// The outcomes.
const (
	Holds   Outcome = "holds"
	Fails   Outcome = "fails"
	Skipped Outcome = "skipped" // it is not enabled
)

// Verdict is what became of one expectation.
type Verdict struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Rule        string            `json:"rule"`
	Line        int               `json:"line"`
	Input       string            `json:"input,omitempty"` // that it was measured on; empty: on none
	Items       int               `json:"items,omitempty"` // of Input
	Variables   map[string]string `json:"variables,omitempty"`
	Outcome     Outcome           `json:"outcome"`
	Figures     []Figure          `json:"figures,omitempty"`
	Reason      string            `json:"reason,omitempty"` // why the rule could not be asked
}

// Needs is what would be needed for the rule to hold, as far as that follows from it.
func (v *Verdict) Needs() (all []string) {
	for _, f := range v.Figures {
		all = slices.Concat(all, f.Needs)
	}
	return all
}

// Figure is something that was measured.
type Figure struct {
	Figure   string         `json:"figure"` // as the rule writes it
	Value    any            `json:"value"`  // a number, a text or a bool; nil: see Error
	Interval *eval.Interval `json:"interval,omitempty"`
	// A share is Count of Of items; Of is 0 where the figure is none.
	Count int      `json:"count,omitempty"`
	Of    int      `json:"of,omitempty"`
	Note  string   `json:"note,omitempty"`  // what there is to say beside the value
	Needs []string `json:"needs,omitempty"` // what would be needed for the rule to hold
	Error string   `json:"error,omitempty"` // why it could not be measured
}

// Baseline is how the answers differ from those of an earlier run.
type Baseline struct {
	Run string `json:"run"`
	// Paired are the items that are compared: Lost are those that the run had right and the
	// pipeline has wrong.
	Paired eval.Paired `json:"paired"`
	Worse  bool        `json:"worse"` // by more than chance explains
	// Left out: items that the run does not have or had not answered for good, or people had decided,
	// and those whose label has changed since.
	Missing    int      `json:"missing,omitempty"`
	Relabelled int      `json:"relabelled,omitempty"`
	Lost       []string `json:"lost,omitempty"` // ids, of the first maxLost
}

// Chance is above which a difference from the baseline may be one.
const Chance = 1 - eval.IntervalLevel
