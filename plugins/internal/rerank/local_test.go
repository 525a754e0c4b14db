package rerank

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestLocalConformance(t *testing.T) { sdktest.Stage(t, Local(), "{}") }

func opened(t testing.TB, config string) *localReranker {
	t.Helper()
	r, err := Local().Open(t.Context(), sdk.Setup{}, []byte(config))
	must.Do(t, err)
	return r.(*localReranker)
}

// candidate returns a candidate with score 0.
func candidate(text string) sdk.Candidate { return sdk.Candidate{Text: text} }

// filler returns candidates about something else.
func filler(n int) (all []sdk.Candidate) {
	for i := range n {
		all = append(all, candidate(fmt.Sprintf("how do you read page %d of the book", i)))
	}
	return all
}

func TestWhatCounts(t *testing.T) {
	scored := func(score float32) sdk.Candidate { return sdk.Candidate{Text: "nothing", Score: score} }
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
		"the score":                {`{"diversity": 0}`, []sdk.Candidate{scored(.3), scored(.9), scored(float32(math.NaN())), scored(float32(math.Inf(1)))}, 1},
		"scores below 0":           {"{}", []sdk.Candidate{scored(-9), scored(float32(math.NaN())), scored(-3)}, 2},
		"words in the context":     {"{}", append(filler(5), in("about DiffExecutor")), 5},
		"a stem in the context":    {"{}", append(filler(5), in("creating")), 5},
		"added terms":              {"{}", append(filler(5), in(sdk.JoinContext([]string{"about it"}, []string{"a DiffExecutor"}))), 5},
		"not words in the text":    {"{}", append(filler(5), candidate("create a new one")), 0},
		"an identifier":            {"{}", append(filler(5), candidate("DiffExecutor{}")), 5},
		"not its parts":            {"{}", append(filler(5), candidate("diff := executor")), 0},
		"one in the context":       {`{"fields": 0}`, append(filler(5), in("type DiffExecutor")), 5},
		"the title":                {"{}", append(filler(5), with(candidate("x"), "title", "DiffExecutor")), 5},
		"the path":                 {"{}", append(filler(5), with(candidate("x"), "path", "/src/diff_executor.rs")), 5},
		"not another field":        {"{}", append(filler(5), with(candidate("x"), "author", "DiffExecutor")), 0},
		"a field that is named":    {`{"field_names": ["author"]}`, append(filler(5), with(candidate("x"), "author", "DiffExecutor")), 5},
		"the score above a field":  {"{}", []sdk.Candidate{scored(1), with(scored(0), "title", "new or else")}, 0},
		"a field above the score":  {`{"fields": 100}`, []sdk.Candidate{scored(1), with(scored(0), "title", "new or else")}, 1},
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

// TestFeatures compares with values computed by hand.
func TestFeatures(t *testing.T) {
	r := opened(t, "{}")
	it := sdk.Item{Text: "Where does readCard() find the `lost` cards?", Candidates: []sdk.Candidate{
		{Text: "func readCard() {}", Context: "cards", Score: 3},
		{Text: "readCards(lost)", Meta: sdk.Meta{"title": "reading"}, Score: 1},
		{Text: "nothing", Score: 2},
		{Text: "find(x)", Meta: sdk.Meta{"path": "read_card.go"}, Score: 1},
	}}
	// Two of the six stems are in two fields each, and four in none. Each of the two identifiers is in
	// one text.
	rare, two := math.Log(1+4.5/.5), math.Log(2)
	one := two / (4*rare + 2*two)
	want := []features{{1, one, .5}, {0, one, .5}, {.5, 0, 0}, {0, 2 * one, 0}}
	for i, got := range r.read(&it).features {
		w := want[i]
		if math.Abs(got.score-w.score) > 1e-12 || math.Abs(got.identifiers-w.identifiers) > 1e-12 || math.Abs(got.fields-w.fields) > 1e-12 {
			t.Errorf("candidate %d: %+v, want %+v", i, got, w)
		}
	}
	for _, got := range r.rank(&it) {
		w := want[got.Candidate]
		if math.Abs(float64(got.Score)-(w.score+.2*w.fields+.2*w.identifiers)) > 1e-6 {
			t.Errorf("candidate %d has the score %v", got.Candidate, got.Score)
		}
	}
}

func TestIdentifiers(t *testing.T) {
	r := opened(t, "{}")
	for text, want := range map[string][]string{
		"How do you create a new DiffExecutor?":               {"diffexecutor"},
		"does on_add() of p53 and clpC add `Trees` (or not)?": {"on_add", "trees"},
		"remove(x) and remove()":                              {"remove"},
		"東京 〇 and 2020, U-boats and CPU":                      nil,
		"_ __ `_`":                                            nil,
	} {
		q := newQuery(r.code.Append(nil, text))
		var got []string
		for w, n := range q {
			if r.identifiers(q, text)[n] {
				got = append(got, w)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDiversity(t *testing.T) {
	it := sdk.Item{Text: "?", Candidates: []sdk.Candidate{
		{Text: "a lost card is blocked by phone at once", Score: .90},
		{Text: "a lost card is blocked by phone at once", Score: .89},
		{Text: "a lost card can now be blocked by phone", Score: .88},
		{Text: "a lost card is blocked by phone at once today", Score: .87},
		{Text: "weather", Score: .1},
	}}
	// The third and the first share 6 of their 12 words, which is no copy yet. The fourth and the
	// first share 9 of 10: half of the weight is subtracted.
	for config, want := range map[string][]int{
		`{"diversity": 0}`:    {0, 1, 2, 3, 4},
		`{"diversity": 0.03}`: {0, 2, 1, 3, 4},
		`{}`:                  {0, 2, 3, 1, 4},
		`{"diversity": 1}`:    {0, 2, 3, 4, 1},
	} {
		var order []int
		last := float32(math.Inf(1))
		for _, r := range opened(t, config).rank(&it) {
			order = append(order, r.Candidate)
			if r.Score > last {
				t.Errorf("%s: scores rise to %v", config, r.Score)
			}
			last = r.Score
		}
		if !slices.Equal(order, want) {
			t.Errorf("%s: order %v, want %v", config, order, want)
		}
	}
}

// TestDiverse compares with the definition of maximal marginal relevance.
func TestDiverse(t *testing.T) {
	must.NoRace(t)
	const n, copied, weight = 120, .3, .7
	relevance, sets := make([]float64, n), make([][]int, n)
	for i := range n {
		relevance[i] = math.Mod(float64(i)*.6180339887, 1)
		for w := range 40 {
			if (i*7+w*13)%11 < 3 {
				sets[i] = append(sets[i], w)
			}
		}
	}
	order, values := diverse(relevance, sets, 40, copied, weight)
	chosen := map[int]bool{}
	for place, got := range order {
		best, which := math.Inf(-1), -1
		for i := range n {
			nearest := 0.0
			for _, before := range order[:min(place, maxDiverse)] {
				nearest = max(nearest, jaccard(sets[i], sets[before]))
			}
			if v := relevance[i] - weight*max(0, nearest-copied)/(1-copied); !chosen[i] && v > best {
				best, which = v, i
			}
		}
		if got != which || values[place] != best {
			t.Fatalf("place %d: %d with %v, want %d with %v", place, got, values[place], which, best)
		}
		chosen[got] = true
	}
}

// jaccard is independent of overlap.
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

func TestLocalConfig(t *testing.T) {
	for _, config := range []string{`{"identifiers": -1}`, `{"diversity": 1001}`, `{"fields": -0.5}`} {
		_, err := Local().Open(t.Context(), sdk.Setup{}, []byte(config))
		if err == nil || !strings.Contains(err.Error(), "it must be from 0 to 1000") {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestLocalGolden(t *testing.T) { apitest.CheckReply(t, Local(), `{}`, "4 3064b335c20024ba") }
