package tune

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
)

// This file says how to score an item where values of an argument are tried, and what the result of
// trying them is.
//
// It runs no pipeline: package engine does, and crossval.go chooses.

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
	if name := t.Variable(); name != "" {
		return fmt.Sprintf("%s = %s", name, value)
	}
	return fmt.Sprintf("set %s = %s", t.Name, value)
}

// ValueOf returns the value of a variable of a file.
func ValueOf(f *pipeline.File, name string) string {
	for _, v := range f.Variables {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

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
