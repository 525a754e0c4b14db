package local

import (
	"os"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// reranked are the ids of an item's candidates as the stage orders them.
func reranked(t testing.TB) func(sdk.Item) []string {
	r := opened(t, "{}")
	return func(it sdk.Item) []string {
		var ids []string
		for _, ranked := range r.rank(&it) {
			ids = append(ids, it.Candidates[ranked.Candidate].ID)
		}
		return ids
	}
}

// everything names the variable that asks for the long comparisons, too.
const everything = "RACFLOW_TEST_QUALITY"

var (
	rrf      = sdk.Fusion{Method: "rrf", K: 60}
	weighted = sdk.Fusion{Method: "weighted", DenseWeight: 0.7}
)

// some are repositories with half of the questions and a third of the chunks, since embedding
// takes nearly all of the test's time. They were chosen because the stage gains much on them:
// their gain shows that it still works, not what it is worth.
var some = []string{"AFLplusplus/LibAFL", "apache/logging-log4cxx", "Ciphey/Ciphey", "GoogleContainerTools/jib"}

// TestQuality compares the first of 150 candidates of MiniLM and BM25 with and
// without this stage. Weights were tuned on these queries; see TestScifact for
// others.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("it embeds a few hundred chunks")
	}
	all := os.Getenv(everything) != ""
	for name, c := range map[string]struct {
		context      bool
		analyzer     string
		fusion       sdk.Fusion
		repositories []string // empty: all
		gain         float64  // of pass@5, at least
	}{
		"some":     {true, "code", rrf, some, .05},
		"words":    {false, "standard", rrf, nil, .06},
		"context":  {true, "code", rrf, nil, .03},
		"weighted": {true, "code", weighted, nil, .03},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "some" && !all {
				t.Skip(everything + " is not set: it embeds all chunks")
			}
			questions := codebases(t, c.context, c.repositories...).retrieve(t, c.analyzer, c.fusion)
			without, with := pass(questions, 5, order), pass(questions, 5, reranked(t))
			t.Logf("pass@5 %.4f without, %.4f with; pass@20 %.4f and %.4f", without, with,
				pass(questions, 20, order), pass(questions, 20, reranked(t)))
			if with < without+c.gain {
				t.Errorf("pass@5 is %.4f without the stage and %.4f with it", without, with)
			}
		})
	}
}

// TestScifact does the same on claims that no weight was tuned on.
func TestScifact(t *testing.T) {
	if os.Getenv(everything) == "" {
		t.Skip(everything + " is not set: it embeds 5,183 abstracts")
	}
	for name, fusion := range map[string]sdk.Fusion{"rrf": rrf, "weighted": weighted} {
		s := scifact(t, "queries_train.jsonl")
		train := len(s.questions)
		s.questions = append(s.questions, scifact(t, "queries_test_public.jsonl").questions...)
		questions := s.retrieve(t, "standard", fusion)
		for part, q := range map[string][]question{"train": questions[:train], "test": questions[train:]} {
			without, with := ndcg(q, order), ndcg(q, reranked(t))
			t.Logf("%s, %s: nDCG@10 %.4f without, %.4f with", name, part, without, with)
			if with < without-.005 {
				t.Errorf("%s, %s: nDCG@10 falls from %.4f to %.4f", name, part, without, with)
			}
		}
	}
}
