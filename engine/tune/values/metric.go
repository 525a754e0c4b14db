package values

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Metric is what an item is scored by. The zero Metric is the accuracy, where items have
// labels, and else nDCG@10.
type Metric struct {
	name string // accuracy, ndcg or recall; empty: it depends
	k    int    // of recall
}

// The metrics that have no length.
var (
	Accuracy = Metric{name: "accuracy"}
	NDCG     = Metric{name: "ndcg"}
)

// ReadMetric reads accuracy, ndcg@10 or recall@K.
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

// For is the metric for items that have labels, or gold passages alone.
func (m Metric) For(labels bool) Metric {
	switch {
	case m.name != "":
		return m
	case labels:
		return Accuracy
	}
	return NDCG
}

// Searches reports whether lists are scored, so that no voter is needed.
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

// Score is that of an item between 0 and 1, where Row holds for it. Lists are scored as
// the last search or reranking has left them.
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
