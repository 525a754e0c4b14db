package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/tune"
	"github.com/racflow/racflow/engine/tune/crossval"
	"github.com/racflow/racflow/engine/tune/flagging"
	"github.com/racflow/racflow/engine/tune/values"
)

// trial tries values of arguments on the items of the input, one target after another.
type trial struct {
	*Pipeline
	subject    tune.Subject
	metric     values.Metric
	split      bool // some rows are reserved for a promise
	folds      crossval.Folds
	set        []pipeline.Override // with which every voter is asked; with values of variables that are kept
	incomplete bool
}

// try tries the values of each target. Of a variable, a value that is better stays set for
// those after it, and is written; one of an argument is not, because the file would still
// say otherwise.
func (t *trial) try(ctx context.Context, targets []values.Target) (all []values.Tried, err error) {
	now := map[bool][]float64{} // scores with what is set, by whether every voter is asked
	for _, target := range targets {
		off := t.off(target)
		if now[off != nil] == nil {
			if now[off != nil], err = t.scores(ctx, "as it is", off); err != nil {
				return nil, err
			}
		}
		tried, scores := values.Tried{Target: target, Values: []string{target.Now}}, [][]float64{now[off != nil]}
		for _, value := range target.Values {
			set := pipeline.Override{Target: target.Name, Value: value}
			same, err := t.same(off, set)
			if unsuitable := new(DiagnosticsError); same || target.Unnamed && errors.As(err, &unsuitable) {
				continue
			}
			if err != nil {
				return nil, err
			}
			of, err := t.scores(ctx, set.String(), append(slices.Clip(off), set))
			if err != nil {
				return nil, err
			}
			tried.Values, scores = append(tried.Values, value), append(scores, of)
		}
		tried.Choice = t.folds.Choose(scores)
		all = append(all, tried)
		if best, ok := tried.Best(); ok && target.Variable() != "" {
			t.set = overridden(t.set, []pipeline.Override{{Target: target.Name, Value: best}})
			now = map[bool][]float64{off != nil: scores[tried.Choice.Best]}
		}
	}
	return all, nil
}

// off turns off what is not needed while a target is varied: all voters where lists are
// scored, and voters that ask services or get the doubtful items alone, where the target
// does not change what they are asked, and others remain. nil: nothing.
func (t *trial) off(target values.Target) []pipeline.Override {
	var off []pipeline.Override
	others := false
	for _, s := range t.chosen.Stages {
		votes := slices.Contains([]string{"prompt", "sample", "elect"}, s.Block)
		switch {
		case !s.Enabled || !votes:
		case t.metric.Searches() || s.Block == "sample" && (s.Info.Network || t.subject.Sends(s.Name)):
			off = append(off, pipeline.Override{Target: s.Block + "." + s.Name + ".enabled", Value: "false"})
		case s.Block == "sample":
			others = true
		}
	}
	if !t.metric.Searches() && (target.Calls() || !others) {
		return nil
	}
	return off
}

// same reports whether the pipeline is what it is already with an argument set.
func (t *trial) same(off []pipeline.Override, set pipeline.Override) (bool, error) {
	parts := func(set []pipeline.Override) (map[string]string, error) {
		o := t.workspace.options
		file, diags, err := t.workspace.read(t.file.Path, o.Input, overridden(o.Set, slices.Concat(t.set, set)))
		if err != nil {
			return nil, err
		}
		if diags.HasErrors() {
			return nil, &DiagnosticsError{diags, file.Sources}
		}
		chosen, err := t.workspace.Choose(file)
		if err != nil {
			return nil, err
		}
		return identity.Parts(chosen), nil
	}
	before, err := parts(off)
	if err != nil {
		return false, err
	}
	after, err := parts(append(slices.Clip(off), set))
	return maps.Equal(before, after), err
}

// scores runs the pipeline with arguments set, and scores its items.
func (t *trial) scores(ctx context.Context, name string, set []pipeline.Override) ([]float64, error) {
	if events := t.workspace.options.Events; events.Measuring != nil {
		events.Measuring(name)
	}
	v, err := t.variant(ctx, slices.Concat(t.set, set), func(o *Options) {
		o.Lists = t.metric.Searches()
		report := o.Events.Progress
		o.Events.Begun, o.Events.Ended, o.Events.Knowledge = nil, nil, nil // what they say is the same of every value
		o.Events.Answered = nil
		if report != nil {
			o.Events.Progress = func(s Progress) {
				if s.Doing == "answering" {
					s.Doing += " with " + name
				}
				report(s)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer v.Close()
	var results []outcome.Result
	out, err := v.Work(ctx, func(batch []outcome.Result) error {
		for _, r := range batch {
			if r.Decided == nil && t.metric.Row(source.Row{Label: r.Expected, Gold: r.Gold}) && !(t.split && flagging.Reserved(r.Text)) {
				results = append(results, r)
			}
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	t.incomplete = t.incomplete || out.Incomplete()
	counter, scores := eval.NewCounter(out.Labels...), make([]float64, len(results))
	for i, r := range results {
		scores[i] = t.metric.Score(counter, r)
	}
	if n := len(t.folds.All()); len(scores) != n {
		return nil, fmt.Errorf("%d items were scored, and %d before: the input has changed meanwhile", len(scores), n)
	}
	return scores, nil
}
