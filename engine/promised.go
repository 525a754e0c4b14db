package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/promise"
	"github.com/racflow/racflow/engine/tune"
	"github.com/racflow/racflow/engine/tune/crossval"
	"github.com/racflow/racflow/engine/tune/flagging"
)

// subject finds what is to be tuned, and the flag rule where a promise is asked for. The
// flag rule's threshold is found alone where Options.Threshold names it, or where there
// is nothing else.
func (p *Pipeline) subject(o tune.Options) (tune.Subject, flagging.Rule, hcl.Diagnostics) {
	s, diags := tune.Find(p.file, p.chosen, o.Threshold)
	flag, missed := flagging.Find(p.chosen)
	named := o.Threshold != "" && o.Threshold == flag.Variable
	switch {
	case o.Promise == nil && named && diags.HasErrors():
		return s, flag, flag.Diagnostic(p.chosen, "is found for an accuracy that is to be promised, such as --accuracy 0.95")
	case o.Promise == nil:
		return s, flag, diags
	case missed.HasErrors():
		return s, flag, missed
	case s.Compares(flag.Variable):
		return s, flag, flag.Diagnostic(p.chosen, "is also that of a when rule, so it cannot serve a promise: give the flag rule a variable of its own")
	case named || o.Threshold == "" && s.Nothing():
		return tune.Subject{}, flag, nil
	}
	return s, flag, diags
}

// checkRows returns how rows with these texts are split into folds, those aside that are
// reserved for a promise, and an error where they are too few.
func checkRows(texts []string, o tune.Options, split bool) (crossval.Folds, error) {
	var tuned []string
	reserved := map[string]bool{}
	for _, text := range texts {
		if o.Promise != nil && (!split || flagging.Reserved(text)) {
			reserved[text] = true
		} else {
			tuned = append(tuned, text)
		}
	}
	if o.Promise != nil {
		if err := o.Promise.Check(len(reserved)); err != nil {
			return crossval.Folds{}, err
		}
	}
	if o.Promise != nil && !split {
		return crossval.Folds{}, nil
	}
	return crossval.Split(tuned, o.Folds)
}

// promise finds the threshold of the flag rule on rows that serve nothing else. That
// there is none is an error where nothing else was found.
func (t *Tuned) promise(flag flagging.Rule, rows []outcome.Result, labels []string, g promise.Goal, split bool) error {
	found, err := flag.Promise(rows, labels, g)
	switch {
	case err == nil:
		found.Split = split
		t.Flag, t.Variables = &found, t.Variables+found.Note()
	case !split:
		return err
	default:
		t.Unpromised = fmt.Errorf("%w (half of the rows, on which no other value was found; --variable %s finds this one alone, on all)", err, flag.Variable)
	}
	return nil
}

// promised is the promise of the files of variables, to be measured; nil: they state none,
// or its threshold has been given another value.
func (p *Pipeline) promised(labels []string) (*eval.Promised, error) {
	for _, name := range slices.Backward(p.workspace.options.VarFiles) {
		n, ok, err := flagging.Read(name)
		if err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		for _, v := range p.file.Variables {
			if value, err := strconv.ParseFloat(v.Value, 64); v.Name == n.Variable && err == nil && value == n.Value {
				return eval.NewPromised(n.Goal.Accuracy, n.Goal.Confidence, n.Caught, labels...), nil
			}
		}
		return nil, nil
	}
	return nil, nil
}
