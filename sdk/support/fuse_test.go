package support

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var none = sdk.Unscored

func hit(id string, dense, lexical float32) sdk.Hit {
	return sdk.Hit{ID: id, Dense: dense, Lexical: lexical}
}

func TestFuse(t *testing.T) {
	type want struct {
		id    string
		score float64
	}
	weighted := sdk.Fusion{Method: Weighted, DenseWeight: 0.8}
	rrf := sdk.Fusion{Method: RRF, K: 60}
	both := sdk.Hits{
		Dense:   []sdk.Hit{hit("a", 0.9, none), hit("b", 0.8, 0), hit("c", 0.5, 2)},
		Lexical: []sdk.Hit{hit("d", none, 8), hit("b", none, 4), hit("e", 0.25, 4)},
	}
	tests := []struct {
		name   string
		hits   sdk.Hits
		fusion sdk.Fusion
		topK   int
		want   []want
	}{
		{"weighted", both, weighted, 10, []want{
			{"b", 0.8*0.8 + 0.2*4/8}, {"a", 0.8 * 0.9}, {"c", 0.8*0.5 + 0.2*2/8}, {"e", 0.8*0.25 + 0.2*4/8}, {"d", 0.2},
		}},
		{"weighted, cut", both, weighted, 2, []want{{"b", 0.74}, {"a", 0.72}}},
		{"ranks", both, rrf, 10, []want{
			{"b", 2.0 / 62}, {"a", 1.0 / 61}, {"d", 1.0 / 61}, {"c", 1.0 / 63}, {"e", 1.0 / 63},
		}},
		{"none wanted", both, rrf, 0, nil},
		{"nothing found", sdk.Hits{}, weighted, 5, nil},
		{"dense alone", sdk.Hits{Dense: both.Dense}, weighted, 5, []want{{"a", 0.9}, {"b", 0.8}, {"c", 0.5}}},
		{"lexical alone", sdk.Hits{Lexical: both.Lexical}, weighted, 5, []want{{"d", 1}, {"e", 0.5}, {"b", 0.5}}},
		{"dense alone by ranks", sdk.Hits{Dense: both.Dense}, rrf, 2, []want{{"a", 1.0 / 61}, {"b", 1.0 / 62}}},
		{"lexical found nothing", sdk.Hits{Dense: both.Dense[:1], Lexical: []sdk.Hit{}}, weighted, 5, []want{{"a", 0.72}}},
		{"ties by dense, lexical, id", sdk.Hits{Dense: []sdk.Hit{
			hit("z", none, 1), hit("y", 0, none), hit("x", 0, 1), hit("w", 0, 1), hit("v", 0, 2),
		}}, weighted, 5, []want{{"v", 0}, {"w", 0}, {"x", 0}, {"y", 0}, {"z", 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Fuse(tt.hits, tt.fusion, tt.topK)
			if len(got) != len(tt.want) {
				t.Fatalf("%d candidates, want %d: %v", len(got), len(tt.want), got)
			}
			for i, w := range tt.want {
				if got[i].ID != w.id || math.Abs(float64(got[i].Score)-w.score) > 1e-6 {
					t.Errorf("candidate %d is %s with %v, want %s with %v", i, got[i].ID, got[i].Score, w.id, w.score)
				}
			}
		})
	}
}

func TestCandidatesCarryEntriesAndBothScores(t *testing.T) {
	entry := &sdk.Entry{ID: "a", Text: "text", Label: "label", Context: "context", Meta: sdk.Meta{"k": "v"}}
	got := Fuse(sdk.Hits{
		Dense:   []sdk.Hit{hit("a", 0.5, none), hit("b", 0.4, none)},
		Lexical: []sdk.Hit{{ID: "a", Dense: none, Lexical: 3, Entry: entry}},
	}, sdk.Fusion{Method: RRF, K: 60}, 2)
	a, b := got[0], got[1]
	must.Equal(t, "candidate of both legs", []any{float32(0.5), float32(3), "text", "label", "context", "v"}, []any{a.Dense, a.Lexical, a.Text, a.Label, a.Context, a.Meta["k"]})
	if b.Dense != 0.4 || b.Lexical == b.Lexical || b.Text != "" {
		t.Errorf("candidate of the dense leg: %+v", b)
	}
}

func TestCheck(t *testing.T) {
	for _, f := range []sdk.Fusion{{Method: "sum"}, {}, {Method: Weighted, DenseWeight: 1.1}, {Method: Weighted, DenseWeight: math.NaN()}, {Method: RRF, K: -1}} {
		if CheckFusion(f) == nil {
			t.Errorf("%+v passes", f)
		}
	}
	for _, f := range []sdk.Fusion{{Method: Weighted}, {Method: Weighted, DenseWeight: 1}, {Method: RRF, K: 60}} {
		if err := CheckFusion(f); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// TestTopIsPrefix checks that cutting early gives the head of the whole ranking, on lists with many
// ties.
func TestTopIsPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		hits := random(r, 1+r.IntN(60), 8)
		fusion := sdk.Fusion{Method: []string{Weighted, RRF}[r.IntN(2)], DenseWeight: 0.5, K: 60}
		all := Fuse(hits, fusion, 1000)
		if !slices.IsSortedFunc(all, func(a, b sdk.Candidate) int { return cmp.Compare(b.Score, a.Score) }) {
			t.Fatal("not best first")
		}
		k := r.IntN(len(all) + 1)
		for i, c := range Fuse(hits, fusion, k) {
			if c.ID != all[i].ID {
				t.Fatalf("top %d: position %d is %s, in the whole ranking %s", k, i, c.ID, all[i].ID)
			}
		}
	}
}

// random returns n hits per leg with few distinct scores.
func random(r *rand.Rand, n, values int) sdk.Hits {
	leg := func() []sdk.Hit {
		hits := make([]sdk.Hit, n)
		for i, p := range r.Perm(2 * n)[:n] {
			hits[i] = hit(fmt.Sprintf("id%05d", p), float32(r.IntN(values)), float32(r.IntN(values)))
		}
		return hits
	}
	return sdk.Hits{Dense: leg(), Lexical: leg()}
}
