package local

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

func TestConformance(t *testing.T) { sdktest.Stage(t, Stage(), "{}") }

func opened(t testing.TB, config string) *reranker {
	t.Helper()
	r, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*reranker)
}

// candidate has neither score.
func candidate(text string) sdk.Candidate {
	return sdk.Candidate{Text: text, Dense: sdk.Unscored, Lexical: sdk.Unscored}
}

// filler are candidates that speak of something else.
func filler(n int) (all []sdk.Candidate) {
	for i := range n {
		all = append(all, candidate(fmt.Sprintf("how do you read page %d of the book", i)))
	}
	return all
}

func TestWhatCounts(t *testing.T) {
	scored := func(dense, lexical float32) sdk.Candidate {
		return sdk.Candidate{Text: "nothing", Dense: dense, Lexical: lexical}
	}
	with := func(c sdk.Candidate, key, value string) sdk.Candidate {
		c.Meta = sdk.Meta{key: value, "year": 2020.0}
		return c
	}
	in := func(context string) sdk.Candidate {
		c := candidate("see below")
		c.Context = context
		return c
	}
	for name, c := range map[string]struct {
		config     string
		candidates []sdk.Candidate
		best       int // its position
	}{
		"the cosine":               {"{}", []sdk.Candidate{scored(.3, 2), scored(.9, 2), scored(sdk.Unscored, 2)}, 1},
		"the BM25 score":           {"{}", []sdk.Candidate{scored(.3, 2), scored(.3, sdk.Unscored), scored(.3, 5)}, 2},
		"a rare word":              {"{}", append(filler(5), candidate("DiffExecutor wraps another"), candidate("you do read it, how")), 5},
		"an identifier's part":     {"{}", append(filler(5), candidate("the executor of a diff")), 5},
		"words in the context":     {"{}", append(filler(5), in("about DiffExecutor")), 5},
		"words together":           {"{}", []sdk.Candidate{candidate("an executor makes, if it is new, a diff"), candidate("a new diff executor makes it if an")}, 1},
		"the title":                {"{}", append(filler(5), with(candidate("x"), "title", "DiffExecutor")), 5},
		"the path":                 {"{}", append(filler(5), with(candidate("x"), "path", "/src/diff_executor.rs")), 5},
		"not another field":        {"{}", append(filler(5), with(candidate("x"), "author", "DiffExecutor")), 0},
		"a field that is named":    {`{"field_names": ["author"]}`, append(filler(5), with(candidate("x"), "author", "DiffExecutor")), 5},
		"nothing but the fields":   {`{"dense": 0, "words": 0, "phrases": 0}`, []sdk.Candidate{scored(1, 1), with(scored(0, 1), "title", "new DiffExecutor")}, 1},
		"the order, if all is one": {"{}", []sdk.Candidate{candidate("a b"), candidate("c d"), candidate("e f")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := opened(t, c.config).rank(&sdk.Item{Text: "How do you create a new DiffExecutor?", Candidates: c.candidates})
			if len(got) != len(c.candidates) || got[0].Candidate != c.best {
				t.Errorf("ranked %v, want %d first", got, c.best)
			}
		})
	}
}

func TestDiversity(t *testing.T) {
	it := sdk.Item{Text: "lost card", Candidates: []sdk.Candidate{
		{Text: "a lost card is blocked by phone at once", Dense: .90},
		{Text: "a lost card is blocked by phone at once", Dense: .89},
		{Text: "the lost card office opens early", Dense: .88},
		{Text: "weather", Dense: .1},
	}}
	order := func(config string) (all []int) {
		ranked := opened(t, config).rank(&it)
		falling := func(a, b sdk.Ranked) int {
			if a.Score < b.Score {
				return 1
			}
			return 0
		}
		if !slices.IsSortedFunc(ranked, falling) {
			t.Errorf("scores rise: %v", ranked)
		}
		for _, r := range ranked {
			all = append(all, r.Candidate)
		}
		return all
	}
	if got := order(`{"diversity": 0, "words": 0, "phrases": 0}`); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("without diversity %v", got)
	}
	if got := order(`{"words": 0, "phrases": 0}`); !slices.Equal(got, []int{0, 2, 1, 3}) {
		t.Errorf("with diversity %v", got)
	}
}

// TestDiverse compares with the definition of maximal marginal relevance.
func TestDiverse(t *testing.T) {
	const n, weight = 120, .7
	relevance, sets := make([]float64, n), make([][]int, n)
	for i := range n {
		relevance[i] = math.Mod(float64(i)*.6180339887, 1)
		for w := range 40 {
			if (i*7+w*13)%11 < 3 {
				sets[i] = append(sets[i], w)
			}
		}
	}
	order, values := diverse(relevance, sets, 40, weight)
	chosen := map[int]bool{}
	for place, got := range order {
		best, which := math.Inf(-1), -1
		for i := range n {
			nearest := 0.0
			for _, before := range order[:min(place, maxDiverse)] {
				nearest = max(nearest, jaccard(sets[i], sets[before]))
			}
			if v := relevance[i] - weight*nearest; !chosen[i] && v > best {
				best, which = v, i
			}
		}
		if got != which || values[place] != best {
			t.Fatalf("place %d: %d with %v, want %d with %v", place, got, values[place], which, best)
		}
		chosen[got] = true
	}
}

// jaccard is written apart from overlap.
func jaccard(a, b []int) float64 {
	union := map[int]bool{}
	for _, n := range slices.Concat(a, b) {
		union[n] = true
	}
	if len(union) == 0 {
		return 0
	}
	return float64(len(a)+len(b)-len(union)) / float64(len(union))
}

func TestSets(t *testing.T) {
	v := vocabulary{numbers: map[string]int{}}
	for _, c := range []struct {
		text string
		want []int
	}{{"a b a", []int{0, 1}}, {"c b", []int{2, 1}}, {"", []int{}}, {"a b c", []int{0, 1, 2}}} {
		if got := v.set(strings.Fields(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, want %v", c.text, got, c.want)
		}
	}
}

func TestHostileInput(t *testing.T) {
	r := opened(t, "{}")
	long := strings.Repeat("lost card ", 1e5)
	for _, text := range []string{"", "   ", "caf\xe9", "\x00", long, "?!"} {
		it := sdk.Item{Text: text, Candidates: []sdk.Candidate{
			candidate(""), candidate(text), candidate(long), {Dense: -1, Lexical: 0}, {Dense: float32(math.Inf(1)), Lexical: float32(math.Inf(1))},
		}}
		ranked := r.rank(&it)
		for _, got := range ranked {
			if s := float64(got.Score); math.IsNaN(s) || math.IsInf(s, 0) {
				t.Errorf("%.20q: score %v", text, s)
			}
		}
		if len(ranked) != len(it.Candidates) {
			t.Errorf("%.20q: %d of %d ranked", text, len(ranked), len(it.Candidates))
		}
	}
}

func TestConfig(t *testing.T) {
	for _, config := range []string{`{"dense": -1}`, `{"diversity": 1001}`, `{"fields": -0.5}`} {
		_, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
		if err == nil || !strings.Contains(err.Error(), "it must be from 0 to 1000") {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// BenchmarkRerank orders 150 passages of 150 words, as one item of a pipeline.
func BenchmarkRerank(b *testing.B) {
	r := opened(b, "{}")
	it := sdk.Item{Text: "How do you create a new DiffExecutor with two observers?"}
	for i := range 150 {
		var words []string
		for w := range 150 {
			words = append(words, fmt.Sprint("word", (i*31+w*w*7)%2000))
		}
		it.Candidates = append(it.Candidates, sdk.Candidate{Text: strings.Join(words, " "), Dense: float32(i%17) / 17, Lexical: float32(i % 13)})
	}
	for b.Loop() {
		r.rank(&it)
	}
}
