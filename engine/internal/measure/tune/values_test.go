package tune

import (
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

func TestMetric(t *testing.T) {
	list := []sdk.Candidate{{ID: "x"}, {ID: "a"}, {ID: "y"}}
	r := outcome.Result{
		Expected: "l", Answer: "l", Gold: []source.Gold{{IDs: []string{"a"}, Grade: 1}, {IDs: []string{"b"}, Grade: 1}},
		Lists: []outcome.List{{Stage: "retrieve.near"}, {Stage: "rerank.best", Candidates: list}},
	}
	labelled, gold := source.Row{Label: "l"}, source.Row{Gold: r.Gold}
	tests := []struct {
		text, name   string
		score        float64
		labels, gold bool
	}{
		{"accuracy", "accuracy", 1, true, false},
		{"ndcg@10", "nDCG@10", 0.38685280723454163, false, true},
		{"recall@1", "recall@1", 0, false, true},
		{"recall@2", "recall@2", .5, false, true},
	}
	for _, test := range tests {
		m, err := ReadMetric(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Score(eval.NewCounter("l"), r); got != test.score || m.String() != test.name || m.Row(labelled) != test.labels || m.Row(gold) != test.gold {
			t.Errorf("%s (%s): %v; rows %v, %v", test.text, m, got, m.Row(labelled), m.Row(gold))
		}
		failed := r
		failed.Failure = &outcome.Failure{}
		if got := m.Score(eval.NewCounter("l"), failed); got != 0 {
			t.Errorf("%s of a failed item: %v", m, got)
		}
	}
	if m := (Metric{}); m.For(true) != Accuracy || m.For(false) != NDCG || NDCG.For(true) != NDCG {
		t.Error("the metric does not follow from what the rows have")
	}
	for _, text := range []string{"recall", "recall@0", "recall@x", "f1"} {
		if m, err := ReadMetric(text); err == nil {
			t.Errorf("%s is %s", text, m)
		}
	}
}
