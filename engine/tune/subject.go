package tune

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Subject is what of a pipeline can be tuned.
type Subject struct {
	Variable string // the threshold; empty: no rule reads one
	Weights  string // the variable of the voters' weights or accuracies; empty: none
	Argument string // of the election that reads Weights: weights or accuracy
	Learns   bool   // the election finds its weights itself, from votes on rows with labels
	// More are the variables of other arguments of an election that learns, by argument:
	// what it learns beside its weights is written, too.
	More      map[string]string
	Voters    []string
	Undecided []string // variables of other thresholds, which keep their values

	doubts map[string]doubt   // by stage
	values map[string]float64 // of the variables of all thresholds
}

// doubt is a rule that sends the doubtful items to a stage.
type doubt struct {
	signal    string // margin or agreement
	inclusive bool
	variable  string
}

var (
	doubtRule = regexp.MustCompile(`^\s*(margin|agreement)\s*(<=?)\s*var\.(\w+)\s*$`)
	reference = regexp.MustCompile(`^\s*[\w-]+\s*=\s*var\.([\w-]+)\s*$`)
)

// Find finds what can be tuned. Where several thresholds can, variable says
// which is meant.
func Find(f *pipeline.File, p *pipeline.Pipeline, variable string) (Subject, hcl.Diagnostics) {
	s := Subject{doubts: map[string]doubt{}, values: map[string]float64{}}
	var names []string
	var missed hcl.Diagnostics
	for _, stage := range p.Stages {
		if !stage.Enabled || stage.Block != "sample" {
			continue
		}
		s.Voters = append(s.Voters, stage.Name)
		d, ok := readDoubt(stage.When)
		if !ok {
			missed = append(missed, advise(stage)...)
			continue
		}
		s.doubts[stage.Name] = d
		s.values[d.variable] = number(f, d.variable)
		if !slices.Contains(names, d.variable) {
			names = append(names, d.variable)
		}
	}
	s.findWeights(f, p)
	switch {
	case variable != "" && !slices.Contains(names, variable):
		return s, diagnostic(p.Range, "Nothing to tune", "No when rule of an enabled sample stage compares margin or agreement with var.%s.%s",
			variable, rule.DidYouMean(variable, names))
	case variable != "":
		s.Variable = variable
	case len(names) > 1:
		return s, diagnostic(p.Range, "Several thresholds", "One threshold is found at a time: choose one of %s. Values found so far are given in a file of variables.", strings.Join(names, ", "))
	case len(names) == 1:
		s.Variable = names[0]
	case s.Weights == "":
		return s, append(missed, diagnostic(p.Range, "Nothing to tune",
			`tune finds the value of x in a rule such as when = "margin < var.x" of a sample stage, and of y in weights = var.y or accuracy = var.y in the config of the election. This pipeline has neither.`)...)
	}
	for _, n := range names {
		if n != s.Variable {
			s.Undecided = append(s.Undecided, n)
		}
	}
	return s, nil
}

// Nothing reports whether there is nothing to find.
func (s *Subject) Nothing() bool { return s.Variable == "" && s.Weights == "" && len(s.values) == 0 }

// Compares reports whether a when rule compares with a variable.
func (s *Subject) Compares(variable string) bool {
	_, ok := s.values[variable]
	return ok
}

func readDoubt(r *rule.Rule) (doubt, bool) {
	if r == nil {
		return doubt{}, false
	}
	m := doubtRule.FindStringSubmatch(r.Text())
	if m == nil {
		return doubt{}, false
	}
	return doubt{signal: m[1], inclusive: m[2] == "<=", variable: m[3]}, true
}

// advise says what a network stage lacks that tune could work on.
func advise(s *pipeline.Stage) hcl.Diagnostics {
	switch {
	case !s.Info.Network:
		return nil
	case s.When == nil:
		return diagnostic(s.Range, "No threshold", `sample.%s is asked about every item. With when = "margin < var.margin_below", and a variable "margin_below" { default = 0.1 }, it is asked about the doubtful ones only, and tune finds which are.`, s.Name)
	}
	return diagnostic(s.Range, "No threshold", `The rule %q compares with no variable: write when = "margin < var.margin_below", alone, and a variable "margin_below" { default = 0.1 }.`, s.When.Text())
}

// findWeights looks for the variables that an enabled election takes the worth
// of the voters from.
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
			if m := reference.FindSubmatch(at.SliceBytes(src.Bytes)); m != nil {
				variables[name] = string(m[1])
			}
		}
		for _, name := range []string{"weights", "accuracy"} {
			if variable, ok := variables[name]; ok {
				s.Weights, s.Argument = variable, name
				s.Learns = stage.Info.Fits && stage.Info.FitReads.Has(sdk.ColumnSamples)
			}
		}
		if s.Learns {
			delete(variables, s.Argument)
			s.More = variables
		}
	}
}

// Sends reports whether a voter is asked about doubtful items alone.
func (s *Subject) Sends(voter string) bool {
	_, ok := s.doubts[voter]
	return ok
}

// Taken are the variables that are thresholds or arguments of the election, tuned or not.
func (s *Subject) Taken() []string {
	all := slices.Sorted(maps.Keys(s.values))
	for _, variable := range s.arguments() {
		all = append(all, variable)
	}
	return all
}

// Everything are the overrides with which no threshold keeps an item back.
func (s *Subject) Everything() []pipeline.Override {
	var all []pipeline.Override
	for name := range s.values {
		// No margin or agreement is above 1.
		all = append(all, pipeline.Override{Target: "var." + name, Value: "2"})
	}
	return all
}

// asks reports whether a stage is asked about an item where the threshold of
// the tuned variable is at.
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

func number(f *pipeline.File, name string) float64 {
	for _, v := range f.Variables {
		if v.Name == name {
			n, _ := strconv.ParseFloat(v.Value, 64) // the rule has been checked: it is one
			return n
		}
	}
	return 0
}

func diagnostic(at hcl.Range, summary, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at}}
}
