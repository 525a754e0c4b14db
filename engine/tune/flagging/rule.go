package flagging

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
)

// Rule is a flag rule that compares with a variable.
type Rule struct {
	Variable  string
	signal    string // confidence or agreement
	inclusive bool   // <=
}

var flagRule = regexp.MustCompile(`^\s*(confidence|agreement)\s*(<=?)\s*var\.(\w+)\s*$`)

const advice = `write flag = "confidence < var.flag_below", alone, and a variable "flag_below" { default = 0.4 }.`

// Find finds the flag rule of the pipeline's election.
func Find(p *pipeline.Pipeline) (Rule, hcl.Diagnostics) {
	for _, stage := range p.Stages {
		if !stage.Enabled || stage.Block != "elect" {
			continue
		}
		if stage.Flag == nil {
			return Rule{}, diagnostic(stage.Range, "elect.%s flags nothing, so no answers can be left out of a promise: %s", stage.Name, advice)
		}
		m := flagRule.FindStringSubmatch(stage.Flag.Text())
		if m == nil {
			return Rule{}, diagnostic(stage.Range, "The rule %q of elect.%s does not compare with a variable alone: %s", stage.Flag.Text(), stage.Name, advice)
		}
		return Rule{Variable: m[3], signal: m[1], inclusive: m[2] == "<="}, nil
	}
	return Rule{}, diagnostic(p.Range, "Pipeline %q has no election, so no answers can be promised to be right.", p.Name)
}

// Diagnostic says something about the rule's threshold, at the pipeline's election.
func (r Rule) Diagnostic(p *pipeline.Pipeline, what string) hcl.Diagnostics {
	at := p.Range
	for _, stage := range p.Stages {
		if stage.Enabled && stage.Block == "elect" {
			at = stage.Range
		}
	}
	return diagnostic(at, "The threshold of the flag rule, var.%s, %s.", r.Variable, what)
}

func diagnostic(at hcl.Range, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No promise", Detail: fmt.Sprintf(format, args...), Subject: &at}}
}

// of is what the rule compares.
func (r Rule) of(o outcome.Result) float64 {
	if r.signal == "agreement" {
		return o.Agreement
	}
	return cmp.Or(o.Confidence, o.Agreement) // as the rule sees it
}
