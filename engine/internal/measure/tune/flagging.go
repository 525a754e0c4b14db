package tune

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/support"
)

// This file finds a value for the variable in an election's flag rule, such as x in flag =
// "confidence < var.x". With this value, unflagged answers are right at least as often as promised
// (package eval).
//
// A promise (a statistical guarantee) needs a held-out validation set, on which nothing else was chosen. If tune finds
// other values in the same call, the rows are split in two: ReservedForPromise selects the rows for the promise; the
// other rows serve the other values. The split depends on the texts, so that it is the same in every call, and rows
// with the same text stay together.
//
// Note writes the promise into the file of variables, and ReadPromise reads it there, so that a
// measurement on other rows can say whether it was kept.
//
// The file only reads results; package engine runs the pipeline and holds elections again.

// promiseMark begins a comment in a file of variables with the figures of a promise: accuracy,
// confidence, caught share of the out-of-scope rows (0: not promised), variable, value, and the
// highest share of out-of-scope texts for which the promise holds.
const promiseMark = "# promise "

// Note returns the lines of a file of variables that state the promise and set the variable.
func (f FlagPromise) Note() string {
	var b strings.Builder
	for line := range strings.Lines(f.String()) {
		b.WriteString("# " + line)
	}
	value := strconv.FormatFloat(f.Threshold(), 'g', -1, 64)
	fmt.Fprintf(&b, "%s%v %v %v %s %s %v\n", promiseMark, f.Goal.Accuracy, f.Goal.Confidence, math.Floor(1e4*f.Caught)/1e4, f.Rule.Variable, value, f.Unknown())
	fmt.Fprintf(&b, "%s = %s\n", f.Rule.Variable, value)
	return b.String()
}

// NotedPromise is a promise read from a file of variables.
type NotedPromise struct {
	Goal     eval.PromiseGoal
	Caught   float64
	Variable string
	Value    float64
	Unknown  float64 // highest share of out-of-scope texts for which the promise holds
}

// ReadPromise returns the promise in a file of variables; ok is false if there is none.
func ReadPromise(path string) (n NotedPromise, ok bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return n, false, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, cut := strings.CutPrefix(line, promiseMark); cut {
			read, _ := fmt.Sscan(rest, &n.Goal.Accuracy, &n.Goal.Confidence, &n.Caught, &n.Variable, &n.Value, &n.Unknown)
			return n, read == 6, nil
		}
	}
	return n, false, nil
}

// String states the promise and its data in lines for people.
func (f FlagPromise) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f %% are answered, at least %s of them right, with %s confidence\n",
		100*share(f.Answered, f.Rows), percent(f.Goal.Accuracy), percent(f.Goal.Confidence))
	fmt.Fprintf(&b, "found on %d rows", f.Rows)
	if f.Split {
		b.WriteString(" that no other value was found on")
	}
	fmt.Fprintf(&b, ": %d are answered without a flag, %d of them right (%.1f %%)\n", f.Answered, f.Right, 100*share(f.Right, f.Answered))
	if f.Outside > 0 {
		fmt.Fprintf(&b, "out of scope: at least %s are flagged or left without an answer, with %s confidence; %d of %d were\n",
			percent(math.Floor(1e3*f.Caught)/1e3), percent(f.Goal.Confidence), f.Outside-f.Missed, f.Outside)
		fmt.Fprintf(&b, "guaranteed for texts like these rows, while at most %s of them are out of scope\n", percent(f.Unknown()))
	} else {
		b.WriteString("guaranteed for texts like these rows that belong to one of the labels: no row is out of scope\n")
	}
	return b.String()
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(1e6*share)/1e4, 'f', -1, 64) + " %"
}

// FlagPromise is the threshold of a flag rule with its promise.
type FlagPromise struct {
	eval.Promise
	Rule  FlagRule
	Split bool // other values were found on the rest of the rows
}

// ReservedForPromise reports whether a row with this text serves the promise if the rows are split.
func ReservedForPromise(text string) bool { return sha256.Sum256([]byte(text))[0]%2 == 0 }

// Promise finds the threshold on labelled rows. Their results come from a run with the final values
// of all other variables. It ignores failed rows, which say nothing about answers, and rows
// answered without one of the voters.
func (r FlagRule) Promise(results []outcome.Result, labels []string, g eval.PromiseGoal) (FlagPromise, error) {
	counter := eval.NewCounter(labels...)
	items := make([]eval.PromiseItem, 0, len(results))
	for _, o := range results {
		if o.Failure != nil || len(o.Missing) > 0 {
			continue
		}
		items = append(items, eval.PromiseItem{
			Text: o.Text, Confidence: r.compared(o), Answered: o.Answer != "", Right: counter.Right(o), Outside: counter.Outside(o),
		})
	}
	p, err := eval.FindPromise(items, g)
	return FlagPromise{Promise: p, Rule: r}, err
}

// Threshold returns the value of the rule's variable.
func (f FlagPromise) Threshold() float64 { return f.Promise.Threshold(f.Rule.inclusive) }

// FlagRule is a flag rule that compares with a variable.
type FlagRule struct {
	Variable  string
	signal    string // confidence or agreement
	inclusive bool   // <=
}

var flagRule = support.Pattern(`^\s*(confidence|agreement)\s*(<=?)\s*var\.(\w+)\s*$`)

const advice = `write flag = "confidence < var.flag_below", alone, and a variable "flag_below" { default = 0.4 }.`

// FindFlagRule finds the flag rule of the pipeline's election.
func FindFlagRule(p *pipeline.Pipeline) (FlagRule, hcl.Diagnostics) {
	for _, stage := range p.Stages {
		if !stage.Enabled || stage.Block != "elect" {
			continue
		}
		var m []string
		if stage.Flag != nil {
			m = flagRule().FindStringSubmatch(stage.Flag.Text())
		}
		if m == nil {
			return FlagRule{}, bounded.ErrorAt(stage.Range, "No guarantee", "No flag rule of elect.%s compares with a variable alone, so no answers can be left out of a guarantee: %s", stage.Name, advice)
		}
		return FlagRule{Variable: m[3], signal: m[1], inclusive: m[2] == "<="}, nil
	}
	return FlagRule{}, bounded.ErrorAt(p.Range, "No guarantee", "Pipeline %q has no election, so no accuracy can be guaranteed.", p.Name)
}

// Diagnostic reports a problem with the rule's threshold, at the pipeline's election.
func (r FlagRule) Diagnostic(p *pipeline.Pipeline, what string) hcl.Diagnostics {
	at := p.Range
	for _, stage := range p.Stages {
		if stage.Enabled && stage.Block == "elect" {
			at = stage.Range
		}
	}
	return bounded.ErrorAt(at, "No guarantee", "The threshold of the flag rule, var.%s, %s.", r.Variable, what)
}

// compared returns the value that the rule compares.
func (r FlagRule) compared(o outcome.Result) float64 {
	if r.signal == "agreement" {
		return o.Agreement
	}
	return cmp.Or(o.Confidence, o.Agreement) // as the rule sees it
}
