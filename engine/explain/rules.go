package explain

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
)

// decide adds the rules that decided something about an item, and which stages were called
// again.
func (r *Run) decide(k *kept) {
	if bill := k.unasked; bill != nil {
		k.Rules = append(k.Rules, Rule{Rule: RuleSpend, What: fmt.Sprintf("no voter that calls a service was asked, which would take %d calls: what the run may spend goes to other items", bill.Calls)})
	}
	if k.seen == nil {
		return
	}
	for _, one := range k.seen.Rules {
		k.Rules = append(k.Rules, Rule{Stage: one.Stage, Rule: one.Rule, Text: r.textOf(one), What: whatOf(one)})
	}
	for _, one := range k.seen.Retries {
		k.Retries = append(k.Retries, Retry(one))
	}
}

// textOf is a rule as it was written; empty: an older racflow kept the run.
func (r *Run) textOf(one outcome.Rule) string {
	all := r.journal.Manifest.Rules
	at := slices.IndexFunc(all, func(m manifest.Rule) bool { return m.Stage == one.Stage && m.Rule == one.Rule && m.Name == one.Name })
	if at < 0 {
		return ""
	}
	return all[at].Text
}

// whatOf says what a rule did.
func whatOf(one outcome.Rule) string {
	switch one.Rule {
	case outcome.RuleWhen:
		return "it does not hold, so the stage did nothing for the item"
	case outcome.RuleKeep:
		return fmt.Sprintf("it dropped %d of %d candidates", one.N, one.Of)
	case outcome.RuleAccept:
		return fmt.Sprintf("it refused %d of %d answers", one.N, one.Of)
	case outcome.RuleFlag:
		return "it holds, so a person should look at the item"
	case outcome.RuleFallback:
		if one.Why == "" {
			return fmt.Sprintf("it holds, so the fallback %q took over", one.Name)
		}
		return fmt.Sprintf("it holds, so the fallback %q took over after: %s", one.Name, one.Why)
	case outcome.RuleOnError:
		return "the stage failed and was skipped: " + one.Why
	}
	return one.Why
}
