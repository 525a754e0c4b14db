package expect

import (
	"context"
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/promise"
	"github.com/racflow/racflow/engine/rule"
)

// figure is what a figure is. The error says why nothing more can be measured.
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
		return Figure{Value: mean, Interval: new(interval.Mean(mean, len(values))), Note: fmt.Sprintf("%s, of %d items with gold passages", m.last, len(values))}, nil
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
	return Figure{Value: float64(count) / float64(of), Interval: new(interval.Wilson(count, of)), Count: count, Of: of}
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
	var items []promise.Item
	for _, r := range m.results {
		if !eval.Scored(r) || r.Failure != nil {
			continue
		}
		confidence := r.Agreement
		if r.Confidence > 0 {
			confidence = r.Confidence
		}
		items = append(items, promise.Item{Text: r.Text, Confidence: confidence, Answered: r.Answer != "", Right: m.counter.Right(r), Outside: m.counter.Outside(r)})
	}
	if len(items) == 0 {
		return impossible(noLabels)
	}
	p, err := promise.Find(items, promise.Goal{Accuracy: accuracy, Confidence: interval.Level})
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
