package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// This file decides which arguments of a pipeline to vary at no cost and with which values, how to
// score an item, and what the result of trying them is.
//
// If nobody names any, it varies arguments of searches, rerankers and statistical voters that the
// file takes from a variable. Meanwhile voters that ask services, or get only doubtful items, are
// left out, unless there is no other: only values that were asked for by name may cost calls.
//
// It runs no pipeline: package engine does, and crossval.go chooses.

// grid returns values to try for an argument instead of its present one; nil: no sensible values
// are known.
func grid(a sdk.Argument, now string) []string {
	if len(a.OneOf) > 0 {
		return slices.DeleteFunc(slices.Clone(a.OneOf), func(v string) bool { return v == now })
	}
	x, err := strconv.ParseFloat(now, 64)
	if err != nil {
		return nil
	}
	var tried []float64
	switch share := a.Range.Min != nil && a.Range.Max != nil && *a.Range.Min == 0 && *a.Range.Max == 1; {
	case a.Type == sdk.TypeInt:
		tried = []float64{float64(int(x) / 4), float64(int(x) / 2), 2 * x, 4 * x}
	case a.Type == sdk.TypeFloat && share:
		tried = []float64{0, .2, .4, .5, .6, .7, .8, .9, 1}
	case a.Type == sdk.TypeFloat && x == 0:
		tried = []float64{.25, .5, 1, 2}
	case a.Type == sdk.TypeFloat:
		tried = []float64{0, x / 2, x / 1.4, 1.4 * x, 2 * x}
	}
	var all []string
	for _, v := range tried {
		text := strconv.FormatFloat(v, 'g', 4, 64)
		if a.Type == sdk.TypeInt {
			text = strconv.Itoa(int(v))
		}
		if v != x && within(a.Range, v) && !(a.Type == sdk.TypeInt && v < 1) && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func within(r sdk.Range, x float64) bool {
	return !(r.Min != nil && (x < *r.Min || r.MinExcluded && x == *r.Min) || r.Max != nil && (x > *r.Max || r.MaxExcluded && x == *r.Max))
}

// Metric scores an item. The zero Metric is accuracy for items with labels, otherwise nDCG@10.
type Metric struct {
	name string // accuracy, ndcg or recall; empty: see For
	k    int    // of recall
}

// Metrics without a length.
var (
	Accuracy = Metric{name: "accuracy"}
	NDCG     = Metric{name: "ndcg"}
)

// ReadMetric parses accuracy, ndcg@10 or recall@K.
func ReadMetric(text string) (Metric, error) {
	switch k, err := strconv.Atoi(strings.TrimPrefix(text, "recall@")); {
	case text == "":
		return Metric{}, nil
	case text == "accuracy":
		return Accuracy, nil
	case text == "ndcg" || text == "ndcg@10":
		return NDCG, nil
	case strings.HasPrefix(text, "recall@") && err == nil && k > 0:
		return Metric{"recall", k}, nil
	}
	return Metric{}, fmt.Errorf("%q is no metric: write accuracy, ndcg@10 or recall@K with a length K", text)
}

func (m Metric) String() string {
	switch m.name {
	case "ndcg":
		return "nDCG@10"
	case "recall":
		return fmt.Sprintf("recall@%d", m.k)
	}
	return "accuracy"
}

// For returns the metric for items that have labels, or only gold passages.
func (m Metric) For(labels bool) Metric {
	switch {
	case m.name != "":
		return m
	case labels:
		return Accuracy
	}
	return NDCG
}

// Searches reports whether the metric scores lists, so that no voter is needed.
func (m Metric) Searches() bool { return m.name == "ndcg" || m.name == "recall" }

// Row reports whether a row of the input can be scored.
func (m Metric) Row(row source.Row) bool {
	if !m.Searches() {
		return row.Label != ""
	}
	for _, g := range row.Gold {
		if g.Grade > 0 {
			return true
		}
	}
	return false
}

// Score returns the score of an item between 0 and 1, if Row holds for it. A list is scored as the
// last search or reranking left it.
func (m Metric) Score(c *eval.Counter, r outcome.Result) float64 {
	if !m.Searches() {
		if c.Right(r) {
			return 1
		}
		return 0
	}
	if r.Failure != nil || len(r.Lists) == 0 {
		return 0
	}
	list := r.Lists[len(r.Lists)-1].Candidates
	if m.name == "ndcg" {
		return eval.NDCG(r.Gold, list)
	}
	return eval.Recalled(r.Gold, list, m.k)
}

// ValueTarget is an argument or a variable with the values to try.
type ValueTarget struct {
	eval.Target
	Now string // value of a variable in the file; empty: the target is an argument
	// Unnamed says that nobody named the target: values that do not suit the file are skipped.
	Unnamed bool

	stages []*pipeline.Stage // that it changes, as far as known
}

// Variable returns the variable's name; empty: the target is an argument.
func (t ValueTarget) Variable() string {
	name, ok := strings.CutPrefix(t.Name, "var.")
	if !ok {
		return ""
	}
	return name
}

// Setting says how a person sets the value in the file.
func (t ValueTarget) Setting(value string) string {
	argument := t.Name[strings.LastIndex(t.Name, ".")+1:]
	switch {
	case t.Variable() != "":
		return fmt.Sprintf("%s = %s", argument, value)
	case len(t.stages) == 1:
		return fmt.Sprintf("set %s = %s in %s.%s", argument, value, t.stages[0].Block, t.stages[0].Name)
	}
	return fmt.Sprintf("set %s = %s", t.Name, value)
}

// Calls reports whether varying the target needs voters that ask services: it changes their input,
// or how the votes are counted.
func (t ValueTarget) Calls() bool {
	return len(t.stages) == 0 || slices.ContainsFunc(t.stages, func(s *pipeline.Stage) bool { return !free(s) })
}

// free reports whether a stage can be varied without new requests to a service.
func free(s *pipeline.Stage) bool {
	return !s.Info.Network && slices.Contains([]string{"retrieve", "rerank", "sample"}, s.Block)
}

// NamedTargets returns the targets that a person named, in that order.
func NamedTargets(f *pipeline.File, p *pipeline.Pipeline, targets []eval.Target) []ValueTarget {
	uses := usesOf(f, p)
	var all []ValueTarget
	for _, named := range targets {
		t := ValueTarget{Target: named}
		if name := t.Variable(); name != "" {
			t.Now = valueOf(f, name)
			for _, u := range uses {
				if u.variable == name {
					t.stages = append(t.stages, u.stage)
				}
			}
		} else {
			t.stages = stagesOf(p, named.Name)
		}
		all = append(all, t)
	}
	return all
}

// arguments are the arguments of blocks to try if nobody names any; of a config, all numbers and
// choices are.
var arguments = map[string][]string{
	"retrieve": {"top_k", "num_candidates", "mode", "fusion", "dense_weight", "rrf_k"},
	"rerank":   {"top_k"},
}

// FoundTargets returns the targets to try if nobody names any, in file order: variables of the file
// that are arguments of searches, rerankers and statistical voters, without those tuned otherwise
// (taken).
func FoundTargets(f *pipeline.File, p *pipeline.Pipeline, taken ...string) []ValueTarget {
	var all []ValueTarget
	for _, u := range usesOf(f, p) {
		known := slices.ContainsFunc(all, func(t ValueTarget) bool { return t.Variable() == u.variable })
		if known || slices.Contains(taken, u.variable) || u.argument.OutputUnaffected {
			continue
		}
		config := slices.ContainsFunc(u.stage.Info.Arguments, func(a sdk.Argument) bool { return a.Name == u.argument.Name })
		if !config && !slices.Contains(arguments[u.stage.Block], u.argument.Name) {
			continue
		}
		if tried := grid(u.argument, valueOf(f, u.variable)); len(tried) > 0 {
			t := NamedTargets(f, p, []eval.Target{{Name: "var." + u.variable, Values: tried}})[0]
			t.Unnamed = true
			all = append(all, t)
		}
	}
	return slices.DeleteFunc(all, ValueTarget.Calls)
}

func valueOf(f *pipeline.File, name string) string {
	for _, v := range f.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// stagesOf returns the enabled stages that a target STAGE.ARGUMENT or BLOCK.STAGE.ARGUMENT may
// mean.
func stagesOf(p *pipeline.Pipeline, target string) []*pipeline.Stage {
	parts := strings.Split(target, ".")
	argument := parts[len(parts)-1]
	var all []*pipeline.Stage
	for _, s := range p.Stages {
		config := slices.ContainsFunc(s.Info.Arguments, func(a sdk.Argument) bool { return a.Name == argument })
		switch {
		case !s.Enabled || len(parts) < 2 || s.Name != parts[len(parts)-2] || len(parts) == 3 && s.Block != parts[0]:
		case config || slices.Contains(blockArguments(s.Block), argument):
			all = append(all, s)
		}
	}
	return all
}

func blockArguments(block string) []string { return grammar.Described("pipeline", block).Names() }

// ValueTried is the result of trying the values of a target.
type ValueTried struct {
	ValueTarget
	// Values are the values tried, the file's own first; Choice has their means.
	Values []string
	Choice Choice
}

// Best returns the value that replaces the file's; ok: it is better by more than chance.
func (t ValueTried) Best() (value string, ok bool) {
	return t.Values[t.Choice.Best], t.Choice.Best > 0 && t.Choice.Gain.Better()
}

// use is an argument of a stage that the file takes unchanged from a variable.
type use struct {
	variable string
	stage    *pipeline.Stage
	argument sdk.Argument
}

// usesOf returns the arguments of a pipeline's enabled stages that are variables, in file order.
func usesOf(f *pipeline.File, p *pipeline.Pipeline) []use {
	var all []use
	for _, s := range p.Stages {
		body := bodyOf(f, p, s)
		if !s.Enabled || body == nil {
			continue
		}
		block := grammar.Described("pipeline", s.Block)
		for _, a := range block.Arguments {
			if name := variableOf(body, a.Name); name != "" {
				all = append(all, use{name, s, a.Argument})
			}
		}
		for _, config := range body.Blocks {
			if config.Type != "config" || len(config.Labels) > 0 && config.Labels[0] != s.Use {
				continue
			}
			for _, a := range s.Info.Arguments {
				if name := variableOf(config.Body, a.Name); name != "" {
					all = append(all, use{name, s, a})
				}
			}
		}
	}
	return all
}

// bodyOf returns the source of a stage; nil: not found.
func bodyOf(f *pipeline.File, p *pipeline.Pipeline, s *pipeline.Stage) *hclsyntax.Body {
	src := f.Sources[f.Path]
	if src == nil {
		return nil
	}
	file, ok := src.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	for _, b := range file.Blocks {
		if b.Type != "pipeline" || !slices.Equal(b.Labels, []string{p.Name}) {
			continue
		}
		for _, inner := range b.Body.Blocks {
			if inner.Type == s.Block && slices.Equal(inner.Labels, []string{s.Name}) {
				return inner.Body
			}
		}
	}
	return nil
}

// variableOf returns the variable that an argument consists of; empty: it is another expression.
func variableOf(body *hclsyntax.Body, argument string) string {
	a := body.Attributes[argument]
	if a == nil {
		return ""
	}
	e, ok := a.Expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(e.Traversal) != 2 || e.Traversal.RootName() != "var" {
		return ""
	}
	step, ok := e.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return ""
	}
	return step.Name
}
