package rerank

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	store "github.com/racflow/racflow/plugins/internal/store/local"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The fusions of a retrieve block: the default and the other one.
var (
	weighted = sdk.Fusion{Method: "weighted", DenseWeight: 0.7}
	rrf      = sdk.Fusion{Method: "rrf", K: 60}
)

// retrieve finds 150 candidates for the questions of a set, as contextual.hcl does.
func (s *set) retrieve(t testing.TB, stage sdk.Stage, fusion sdk.Fusion) {
	t.Helper()
	embedder, err := sdktest.Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, "{}")
	if err != nil {
		t.Skip("without the model: ", err)
	}
	kept, err := sdktest.Open(t, store.Stage(), sdk.Setup{StateDir: t.TempDir()}, `{"sync": false}`)
	must.Do(t, err)
	_, err = kept.Open(t.Context(), "c", sdk.Schema{Dimension: embedder.Dimension(), Analyzer: s.analyzer})
	must.Do(t, err)
	for part := range slices.Chunk(s.entries, 256) {
		if part[0].Vector == nil { // otherwise they were embedded for another fusion
			var texts []string
			for _, e := range part {
				texts = append(texts, strings.TrimSpace(e.Context+"\n"+e.Text))
			}
			vectors, err := embedder.Embed(t.Context(), sdk.RolePassage, texts)
			must.Do(t, err)
			for i := range part {
				part[i].Vector = vectors[i]
			}
		}
		must.Do(t, kept.Put(t.Context(), "c", part))
	}
	must.Do(t, kept.Commit(t.Context(), "c", nil))
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 600, Texts: true}, Fusion: fusion, TopK: 150}
	for part := range slices.Chunk(s.questions, 32) {
		texts, queries := make([]string, len(part)), make([]sdk.Query, len(part))
		for i, q := range part {
			texts[i] = q.item.Text
		}
		vectors, err := embedder.Embed(t.Context(), sdk.RoleQuery, texts)
		must.Do(t, err)
		for i := range part {
			queries[i] = sdk.Query{Text: texts[i], Vector: vectors[i]}
		}
		lists, err := kept.Retrieve(t.Context(), "c", ranking, queries)
		must.Do(t, err)
		for i := range part {
			part[i].item.Candidates = lists[i]
		}
	}
}

// measures holds recall at 5, 10 and 20, and nDCG at 10, of one list.
type measures [4]float64

var names = [4]string{"recall@5", "recall@10", "recall@20", "nDCG@10"}

// measure compares a list with the question's gold answers. An entry counts as relevant if it is the first of its
// group (Järvelin and Kekäläinen 2002, with gains of 0 and 1).
func (q *question) measure(ranked []sdk.Ranked) (m measures) {
	found := make([]bool, len(q.gold))
	ideal := 0.0
	for i := range min(10, len(q.gold)) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	for place, r := range ranked {
		gains := 0.0
		for g, same := range q.gold {
			if found[g] || !slices.Contains(same, q.item.Candidates[r.Candidate].ID) {
				continue
			}
			found[g], gains = true, 1
			for i, k := range [3]int{5, 10, 20} {
				if place < k {
					m[i] += 1 / float64(len(q.gold))
				}
			}
		}
		if place < 10 {
			m[3] += gains / math.Log2(float64(place+2)) / ideal
		}
	}
	return m
}

// difference returns the mean of paired differences, with the 95 % interval of 10,000 seeded
// bootstrap samples (Efron's percentile method).
func difference(of []float64) (mean, low, high float64) {
	random := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, 10_000)
	for i := range means {
		for range of {
			means[i] += of[random.IntN(len(of))] / float64(len(of))
		}
	}
	slices.Sort(means)
	for _, x := range of {
		mean += x / float64(len(of))
	}
	return mean, means[250], means[9749]
}

func TestLocalMeasure(t *testing.T) {
	q := question{gold: [][]string{{"a", "copy of a"}, {"z"}}}
	var ranked []sdk.Ranked
	for i, id := range strings.Split("copy of a,a,c,d,e,f,z", ",") {
		q.item.Candidates = append(q.item.Candidates, sdk.Candidate{ID: id})
		ranked = append(ranked, sdk.Ranked{Candidate: i})
	}
	want := measures{.5, 1, 1, (1 + 1/math.Log2(8)) / (1 + 1/math.Log2(3))}
	for i, got := range q.measure(ranked) {
		if math.Abs(got-want[i]) > 1e-12 {
			t.Errorf("%s is %v, want %v", names[i], got, want[i])
		}
	}
	mean, low, high := difference([]float64{1, 0, 0, 0})
	if mean != .25 || low != 0 || high != .75 {
		t.Errorf("difference %v [%v, %v], want .25 [0, .75]", mean, low, high)
	}
}
