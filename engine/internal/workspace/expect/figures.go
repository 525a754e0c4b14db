package expect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// f1 returns the mean F1 over the labels that were expected or answered, without out-of-scope labels, as
// in package eval.
func (m *measurement) f1() Figure {
	if m.report.Scored == 0 {
		return impossible(noLabels)
	}
	if sets := m.report.Sets; sets != nil {
		return Figure{Value: m.report.MacroF1, Interval: &sets.MacroF1Interval}
	}
	return Figure{Value: m.report.MacroF1, Interval: new(m.counter.F1Interval(m.results))}
}

// figure measures one figure of a rule. An error means that nothing more can be measured.
func (m *measurement) figure(ctx context.Context, v *workspace.Pipeline, f rule.Figure) (Figure, error) {
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

// share returns a share of items as a figure. If there are no items, why is the figure's error.
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

// ofLabel returns the recall or precision of a label. A node of a tree also stands for all labels below
// it.
func (m *measurement) ofLabel(which, label string) Figure {
	right, expected, answered := 0, 0, 0
	var labels []string
	for _, r := range m.results {
		if !eval.Scored(r) {
			continue
		}
		expects := nodes(r.Form, r.Expected)
		labels = append(labels, expects...)
		given := r.Failure == nil && slices.Contains(nodes(r.Form, r.Answer), label)
		wanted := slices.Contains(expects, label)
		if wanted {
			expected++
		}
		if given {
			answered++
		}
		if given && wanted && !m.counter.Outside(r) {
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

// nodes returns the labels of a set, or the nodes of a tree down to a label.
func nodes(f sdk.LabelForm, labels string) (all []string) {
	for _, label := range f.Split(labels) {
		all = append(all, f.Path(label)...)
	}
	return all
}

// answered returns the share of items whose confidence reaches the threshold that promises an accuracy.
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

// cost returns the price of a thousand items.
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

// leaked returns how many rows of the input are in the knowledge.
func leaked(ctx context.Context, v *workspace.Pipeline) (Figure, error) {
	switch v.InputPath() {
	case "":
		return impossible("the pipeline has no input block"), nil
	case "-":
		return impossible("the input is standard input; name a file"), nil
	}
	some, count, _, err := v.Leaked(ctx)
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

// answer returns the pipeline's answer to a text.
func answer(ctx context.Context, v *workspace.Pipeline, text string) (Figure, error) {
	r, err := v.Answer(ctx, workspace.Item{Text: text})
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

// amongFirst is the default for how many candidates the search for a passage covers.
const amongFirst = 20

// found reports whether a passage is among the first candidates for a question.
func found(ctx context.Context, v *workspace.Pipeline, args []any) (Figure, error) {
	question, passage, k := args[0].(string), args[1].(string), amongFirst
	if len(args) > 2 {
		k = wholeNumber(args[2])
	}
	is := passageOf(passage)
	list, err := v.Retrieve(ctx, workspace.Item{Text: question})
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

// passageOf returns a test for the passage that a text names. The text is an id or a path, or a path
// with a quote as in guide.md"the port is 8080". If it has white space, it is words in the passage.
func passageOf(text string) (is func(workspace.Candidate) bool) {
	path, quote, ok := strings.Cut(text, `"`)
	if quote, closed := strings.CutSuffix(quote, `"`); ok && closed && path != "" && len(strings.Fields(path)) == 1 {
		return func(c workspace.Candidate) bool {
			return isAt(c, path) && strings.Contains(spaced(c.Text), spaced(quote))
		}
	}
	words := spaced(text)
	return func(c workspace.Candidate) bool {
		return isAt(c, text) || strings.Contains(words, " ") && strings.Contains(spaced(c.Text), words)
	}
}

// isAt reports whether a candidate's id, document or path is this path, or ends with it.
func isAt(c workspace.Candidate, path string) bool {
	path = strings.TrimPrefix(path, "/")
	for _, at := range []any{c.ID, c.Meta["document"], c.Meta["path"]} {
		if at, ok := at.(string); ok && (at == path || strings.HasSuffix(at, "/"+path)) {
			return true
		}
	}
	return false
}

// spaced replaces each run of white space with one space, and removes it at both ends.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// Report is the result of a pipeline's expectations.
type Report struct {
	File     string    `json:"file"`
	Pipeline string    `json:"pipeline"`
	Verdicts []Verdict `json:"expects"` // in file order
	Baseline *Baseline `json:"baseline,omitempty"`
	// Incomplete says that items or rows failed during the measurement.
	Incomplete bool `json:"incomplete"`
}

// Holds reports whether every tested expectation holds, and the pipeline is not worse than its
// baseline.
func (r *Report) Holds() bool {
	return r.Count(Fails) == 0 && (r.Baseline == nil || !r.Baseline.Worse)
}

// Count returns how many expectations have an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, v := range r.Verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// Outcome is the outcome of an expectation.
type Outcome string

// Outcomes.
const (
	Holds   Outcome = "holds"
	Fails   Outcome = "fails"
	Skipped Outcome = "skipped" // the expectation is not enabled
)

// Verdict is the result of one expectation.
type Verdict struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Rule        string            `json:"rule"`
	Line        int               `json:"line"`
	Input       string            `json:"input,omitempty"` // input that it was measured on; empty: none
	Items       int               `json:"items,omitempty"` // of Input
	Variables   map[string]string `json:"variables,omitempty"`
	Outcome     Outcome           `json:"outcome"`
	Figures     []Figure          `json:"figures,omitempty"`
	Reason      string            `json:"reason,omitempty"` // why the rule could not be evaluated
}

// Needs returns what failing comparisons would need, for the comparisons that must hold for the rule to
// hold.
func (v *Verdict) Needs() (all []string) {
	for _, f := range v.Figures {
		all = slices.Concat(all, f.Needs)
	}
	return all
}

// Figure is a measured value.
type Figure struct {
	Figure   string         `json:"figure"` // as the rule writes it
	Value    any            `json:"value"`  // a number, a text or a bool; nil: see Error
	Interval *eval.Interval `json:"interval,omitempty"`
	// A share is Count of Of items. Of is 0 if the figure is not a share.
	Count int      `json:"count,omitempty"`
	Of    int      `json:"of,omitempty"`
	Note  string   `json:"note,omitempty"`  // a remark on the value
	Needs []string `json:"needs,omitempty"` // what the rule needs to hold
	Error string   `json:"error,omitempty"` // why it could not be measured
}

// Baseline compares the answers with the answers of an earlier run.
type Baseline struct {
	Run string `json:"run"`
	// Paired compares the items. Lost counts the items that are right in the earlier run and wrong in
	// the pipeline.
	Paired eval.Paired `json:"paired"`
	Worse  bool        `json:"worse"` // by more than chance explains
	// Left-out items. Missing counts items that are absent from the run, have no final answer, or were
	// decided by people. Relabelled counts items whose label has changed since.
	Missing    int      `json:"missing,omitempty"`
	Relabelled int      `json:"relabelled,omitempty"`
	Lost       []string `json:"lost,omitempty"` // ids of lost items, at most maxLost
}

// Chance is the probability above which a difference from the baseline may be due to chance.
const Chance = 1 - eval.IntervalLevel
