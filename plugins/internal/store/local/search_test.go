package local

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// reference is the search by its definition: it scores and sorts everything, in float64.
type reference struct {
	entries []sdk.Entry
	k1, b   float64
}

func (r reference) dense(query []float32) map[string]float64 {
	scores := map[string]float64{}
	for _, e := range r.entries {
		scores[e.ID] = cosine(query, e.Vector)
	}
	return scores
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / max(math.Sqrt(aa*bb), 1e-300)
}

func (r reference) lexical(query string) map[string]float64 {
	analyzer, _ := support.NamedAnalyzer("standard")
	counts := map[string]map[string]float64{}
	lengths := map[string]float64{}
	df := map[string]float64{}
	total := 0.0
	for _, e := range r.entries {
		text := e.Text
		if e.Context != "" {
			text = e.Context + "\n" + e.Text
		}
		words := analyzer.Append(nil, text)
		counts[e.ID] = map[string]float64{}
		for _, w := range words {
			counts[e.ID][w]++
		}
		for w := range counts[e.ID] {
			df[w]++
		}
		lengths[e.ID] = float64(len(words))
		total += float64(len(words))
	}
	n := float64(len(r.entries))
	scores := map[string]float64{}
	for _, w := range analyzer.Append(nil, query) {
		idf := math.Log(1 + (n-df[w]+0.5)/(df[w]+0.5))
		for id, c := range counts {
			if tf := c[w]; tf > 0 {
				scores[id] += idf * tf / (tf + r.k1*(1-r.b+r.b*lengths[id]/(total/n)))
			}
		}
	}
	return scores
}

// best returns the ids of the depth highest scores; equal scores are sorted by id.
func best(scores map[string]float64, depth int) []string {
	var all []string
	for id := range scores {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return all[:min(depth, len(all))]
}

// sameRanking compares hits with the reference; hits whose scores differ only by rounding may change
// positions.
func sameRanking(hits []sdk.Hit, score func(sdk.Hit) float32, want map[string]float64, depth int) error {
	wanted := best(want, depth)
	if len(hits) != len(wanted) {
		return fmt.Errorf("%d hits, want %d", len(hits), len(wanted))
	}
	for i, h := range hits {
		got, reference := float64(score(h)), want[h.ID]
		if math.Abs(got-reference) > 1e-5*max(1, reference) {
			return fmt.Errorf("hit %d: %s has %v, want %v", i, h.ID, got, reference)
		}
		if there := want[wanted[i]]; math.Abs(reference-there) > 1e-5*max(1, there) {
			return fmt.Errorf("hit %d is %s with %v, want %s with %v", i, h.ID, reference, wanted[i], there)
		}
		if i > 0 && (score(hits[i-1]) < score(h) || score(hits[i-1]) == score(h) && hits[i-1].ID >= h.ID) {
			return fmt.Errorf("hits %d and %d stand the wrong way round", i-1, i)
		}
	}
	return nil
}

func denseScore(h sdk.Hit) float32   { return h.Dense }
func lexicalScore(h sdk.Hit) float32 { return h.Lexical }

// randomEntry makes entries that share words, vectors and whole texts.
func randomEntry(r *rand.Rand, id string, dimension int) sdk.Entry {
	e := sdk.Entry{ID: id, Text: randomText(r, r.IntN(12)), Label: fmt.Sprint("label ", r.IntN(5)), Vector: randomVector(r, dimension)}
	if r.IntN(3) == 0 {
		e.Context = randomText(r, 4)
	}
	if r.IntN(20) == 0 {
		e.Text += strings.Repeat(" often", 250+r.IntN(20))
	}
	if r.IntN(4) > 0 {
		e.Meta = sdk.Meta{"n": float64(r.IntN(9) - 4), "b": r.IntN(2) == 0, "s": randomString(r)}
		e.Meta["mixed"] = []any{1.0, true, "1", math.NaN(), math.Copysign(0, -1), math.Inf(1)}[r.IntN(6)]
		if r.IntN(4) == 0 {
			delete(e.Meta, "s")
		}
	}
	return e
}

// randomString returns strings that are equal, prefixes of one another, or longer than their part in the index.
func randomString(r *rand.Rand) string {
	s := strings.Repeat("ab", r.IntN(3)) + strings.Repeat("c", []int{0, 1, 62, 63, 64, 65, 70}[r.IntN(7)])
	return s + []string{"", "d", "\xff", "\x00"}[r.IntN(4)]
}

// randomFilter makes filters over the values of randomEntry.
func randomFilter(r *rand.Rand, depth int) *sdk.Filter {
	if depth > 0 && r.IntN(2) == 0 {
		f := &sdk.Filter{Op: []sdk.FilterOp{sdk.FilterAnd, sdk.FilterOr, sdk.FilterNot}[r.IntN(3)]}
		parts := r.IntN(4)
		if f.Op == sdk.FilterNot {
			parts = 1
		}
		for range parts {
			f.Parts = append(f.Parts, *randomFilter(r, depth-1))
		}
		return f
	}
	f := &sdk.Filter{Field: sdk.FieldMeta, Key: []string{"n", "b", "s", "mixed", "none", "n", "s"}[r.IntN(7)], Op: sdk.FilterIn}
	value := func() any {
		switch f.Key {
		case "n":
			return float64(r.IntN(11)-5) / float64(1+r.IntN(2))
		case "b":
			return r.IntN(2) == 0
		case "mixed":
			return []any{1.0, true, "1", 0.0, math.Inf(-1), ""}[r.IntN(6)]
		}
		return randomString(r)
	}
	switch r.IntN(6) {
	case 0:
		f.Field, f.Key = sdk.FieldID, ""
		value = func() any { return fmt.Sprint(r.IntN(120)) }
	case 1:
		f.Field, f.Key = sdk.FieldLabel, ""
		value = func() any { return []string{"", "label 1", "label 3", "label", "x"}[r.IntN(5)] }
	}
	v := value()
	if _, isBool := v.(bool); !isBool && r.IntN(2) == 0 {
		f.Op = sdk.FilterLess + sdk.FilterOp(r.IntN(5))
		if _, isString := v.(string); !isString && f.Op == sdk.FilterPrefix {
			f.Op = sdk.FilterGreater
		}
		f.Values = []any{v}
		return f
	}
	for range r.IntN(4) {
		f.Values = append(f.Values, value())
	}
	return f
}

func randomText(r *rand.Rand, words int) string {
	var text []string
	for range words {
		text = append(text, fmt.Sprintf("Word%d", int(r.ExpFloat64()*20)))
	}
	return strings.Join(text, " ")
}

func randomVector(r *rand.Rand, dimension int) []float32 {
	x := make([]float32, dimension)
	if r.IntN(20) == 0 {
		return x
	}
	for i := range x {
		x[i] = float32(r.IntN(5) - 2)
	}
	return x
}

func TestSearchEqualsReference(t *testing.T) {
	for _, tt := range []struct {
		entries, queries, depth int
		k1, b                   float64
	}{
		{700, 1, 30, 1.2, 0.75}, {700, 3, 2000, 1.2, 0.75}, {700, 70, 10, 0.9, 0.4},
		{300, 5, 7, 1.2, 0}, {300, 5, 7, 0, 0.75}, {1, 4, 3, 1.2, 0.75}, {0, 2, 3, 1.2, 0.75},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			const dimension = 19
			r := rand.New(rand.NewPCG(3, 4))
			s := openStore(t, t.TempDir())
			s.config.K1, s.config.B = tt.k1, tt.b
			mustOpen(t, s, dimension)
			want := reference{k1: tt.k1, b: tt.b}
			var gone []string
			for i := range tt.entries {
				e := randomEntry(r, fmt.Sprint("e", i), dimension)
				must.Do(t, s.Put(ctx, "c", []sdk.Entry{e}))
				if i%4 == 3 {
					gone = append(gone, e.ID)
				} else {
					want.entries = append(want.entries, e)
				}
			}
			must.Do(t, s.Commit(ctx, "c", nil))
			must.Do(t, s.Delete(ctx, "c", gone))
			must.Do(t, s.Commit(ctx, "c", []byte("deleted")))

			queries := make([]sdk.Query, tt.queries)
			for i := range queries {
				queries[i] = sdk.Query{Text: randomText(r, 1+i%9), Vector: append([]float32{5}, randomVector(r, dimension-1)...)}
			}
			hits, err := s.Search(ctx, "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: tt.depth}, queries)
			must.Do(t, err)
			for i, q := range queries {
				dense, lexical := want.dense(q.Vector), want.lexical(q.Text)
				if err := sameRanking(hits[i].Dense, denseScore, dense, tt.depth); err != nil {
					t.Errorf("query %d, dense: %v", i, err)
				}
				if err := sameRanking(hits[i].Lexical, lexicalScore, lexical, tt.depth); err != nil {
					t.Errorf("query %d, lexical: %v", i, err)
				}
				for _, h := range append(hits[i].Dense, hits[i].Lexical...) {
					if math.Abs(float64(h.Dense)-dense[h.ID]) > 1e-5 || math.Abs(float64(h.Lexical)-lexical[h.ID]) > 1e-4 {
						t.Errorf("query %d: %s has %v and %v, want %v and %v", i, h.ID, h.Dense, h.Lexical, dense[h.ID], lexical[h.ID])
					}
				}
			}
		})
	}
}
