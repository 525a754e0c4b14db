package spend_test

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// book is a journal in memory.
type book map[int]outcome.Result

func (b book) Answered(row source.Row) (outcome.Result, bool) {
	r, ok := b[row.Line]
	return r, ok
}

func (b book) Keep(results []outcome.Result) error {
	for _, r := range results {
		if r.Failure == nil && len(r.Missing) == 0 {
			b[r.Line] = r
		}
	}
	return nil
}

// item is an item of a test, with the cost of asking about it.
type item struct {
	confidence float64
	likely     int // tokens, at a price of one million
	most       int // 0: unknown
	took       int
	requests   int
}

// service asks about items like the stages of a run.
type service struct {
	items  []item
	voter  *pipeline.Stage
	draw   *rand.Rand
	asked  []int // lines
	rounds int
	before int // number of lines that were asked before the last round
	down   int // the voter stops after this number of items; 0: it does not stop
}

func (s *service) spender(limit spend.Limit) *spend.Spender {
	s.voter = &pipeline.Stage{Block: "sample", Name: "llm", N: 1, Price: &pipeline.Price{Input: 1, Output: 1}}
	return spend.New(spend.Options{Limit: limit, Cost: func(voter string, u sdk.Usage) float64 {
		if voter != "llm" {
			return 0
		}
		return s.voter.Price.Of(u)
	}, Forecast: func(_ *pipeline.Stage, it sdk.Item) (sdk.Forecast, error) {
		of := s.items[line(it)-1]
		f := sdk.Forecast{Requests: of.requests, Likely: tokens(of.likely), Most: tokens(of.most)}
		if of.most == 0 {
			f.Unknown = "its answers have no limit"
		}
		return f, nil
	}})
}

func line(it sdk.Item) (n int) {
	_, _ = fmt.Sscan(it.Text, &n) // a test writes it
	return n
}

func tokens(n int) sdk.Usage { return sdk.Usage{InputTokens: uint64(n)} }

var errDown = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the service is down")}

// pass sends lines through the stages, in any order and in batches.
func (s *service) pass(t *testing.T, sp *spend.Spender, j spend.Journal, lines []int) {
	t.Helper()
	lines = slices.Clone(lines)
	s.draw.Shuffle(len(lines), func(a, b int) { lines[a], lines[b] = lines[b], lines[a] })
	for batch := range slices.Chunk(lines, 3) {
		var results []outcome.Result
		for _, n := range batch {
			if _, ok := j.Answered(source.Row{Line: n}); ok {
				continue
			}
			of := s.items[n-1]
			r := outcome.Result{Line: n, Answer: "free", Verdict: result.Verdict{Agreement: .5, Confidence: of.confidence}}
			if sp.Ask(s.voter, n, sdk.Item{Text: fmt.Sprint(n)}) {
				if s.down > 0 && len(s.asked) >= s.down {
					r.Missing = []*outcome.Failure{{Stage: "sample.llm", Err: errDown}}
				} else {
					s.asked = append(s.asked, n)
					r.Answer, r.Usages = "paid", map[string]sdk.Usage{"llm": tokens(of.took)}
				}
			}
			results = append(results, r)
		}
		must.Do(t, j.Keep(results))
	}
}

// run takes both passes. After the given number of rounds it ends as if it were killed; 0: it does
// not.
func (s *service) run(t *testing.T, limit spend.Limit, j book, rounds int) *spend.Spender {
	t.Helper()
	sp := s.spender(limit)
	lines := make([]int, len(s.items))
	for i := range lines {
		lines[i] = i + 1
	}
	s.pass(t, sp, sp.Survey(j), lines)
	for s.rounds = 0; rounds == 0 || s.rounds < rounds; s.rounds++ {
		lines := sp.Round()
		if len(lines) == 0 {
			break
		}
		s.before = len(s.asked)
		s.pass(t, sp, sp.Asking(j), lines)
		if s.down > 0 && len(s.asked) >= s.down {
			sp.Abandon([]*outcome.Failure{{Stage: "sample.llm", Err: errDown}})
			break
		}
	}
	return sp
}

func calls(n int) spend.Limit     { return spend.Limit{Calls: &n} }
func money(m float64) spend.Limit { m /= 1e6; return spend.Limit{Money: &m} }

func TestOrder(t *testing.T) {
	sure := func(confidence ...float64) []item {
		var all []item
		for _, c := range confidence {
			all = append(all, item{confidence: c, likely: 10, most: 10, took: 10, requests: 1})
		}
		return all
	}
	with := func(items []item, change func(i int, it *item)) []item {
		for i := range items {
			change(i, &items[i])
		}
		return items
	}
	tests := map[string]struct {
		items []item
		limit spend.Limit
		want  []int // lines that are asked
	}{
		"the least sure":                      {sure(.9, .2, .8, .1), calls(2), []int{2, 4}},
		"ties by position":                    {sure(.9, .3, .3, .3), calls(2), []int{2, 3}},
		"without a confidence, the agreement": {sure(.6, 0, .4), calls(2), []int{2, 3}},
		"none":                                {sure(.1, .2), calls(0), nil},
		"more than there are":                 {sure(.1, .2), calls(9), []int{1, 2}},
		"several requests":                    {with(sure(.1, .2, .3), func(_ int, it *item) { it.requests = 3 }), calls(7), []int{1, 2}},
		"what does not fit is passed by":      {with(sure(.1, .2, .3), func(i int, it *item) { it.requests = []int{1, 3, 1}[i] }), calls(2), []int{1, 3}},
		"whatever it costs":                   {with(sure(.1, .5), func(i int, it *item) { it.requests = 2 - i }), calls(2), []int{1}},
		"nobody takes part":                   {with(sure(.1, .5), func(_ int, it *item) { it.requests = 0 }), calls(5), nil},
		"what is free, too":                   {with(sure(.1, .5), func(i int, it *item) { it.likely, it.most, it.took = 10-10*i, 10-10*i, 10-10*i }), money(0), []int{2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &service{items: test.items, draw: rand.New(rand.NewPCG(1, 2))}
			j := book{}
			s.run(t, test.limit, j, 0)
			slices.Sort(s.asked)
			if d := cmp.Diff(test.want, s.asked); d != "" {
				t.Error(d)
			}
			for n := range test.items {
				if j[n+1].Answer == "" {
					t.Errorf("item %d has no answer", n+1)
				}
			}
		})
	}
}

// oneByOne returns the lines that are asked if each line is asked after the cost of earlier lines
// is known.
func oneByOne(items []item, limit float64) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return stdcmp.Compare(items[a].confidence, items[b].confidence)
	})
	var asked []int
	for _, i := range order {
		if limit < float64(items[i].most) {
			continue
		}
		limit -= float64(items[i].took)
		asked = append(asked, i+1)
	}
	slices.Sort(asked)
	return asked
}

// TestOneByOne compares rounds, and rounds that are cut off and resumed, with asking about one item
// after the other.
func TestOneByOne(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		var items []item
		for range 1 + draw.IntN(120) {
			it := item{confidence: float64(1+draw.IntN(9)) / 10, likely: 1 + draw.IntN(20), requests: 1}
			it.most = it.likely * (1 + draw.IntN(8))
			it.took = 1 + draw.IntN(it.most)
			items = append(items, it)
		}
		limit := float64(draw.IntN(1200))
		want := oneByOne(items, limit)
		for _, cutOff := range []int{0, 1, 2} {
			s, j := &service{items: items, draw: draw}, book{}
			if cutOff > 0 {
				s.run(t, money(limit), j, cutOff)
				for n := range items { // calls in progress are lost
					if slices.Contains(s.asked[s.before:], n+1) && draw.IntN(4) == 0 {
						first := outcome.Result{Line: n + 1, Answer: "free", Verdict: result.Verdict{Confidence: items[n].confidence}}
						first.Unasked = &outcome.Bill{Calls: 1, Cost: float64(items[n].likely) / 1e6, Most: float64(items[n].most) / 1e6, Gain: 1 - items[n].confidence}
						j[n+1] = first
					}
				}
			}
			sp := s.run(t, money(limit), j, 0)
			var asked []int
			took := 0.0
			for n := range items {
				if j[n+1].Asked != nil {
					asked = append(asked, n+1)
					took += float64(items[n].took)
				}
			}
			r := sp.Report()
			n := len(asked)
			if d := cmp.Diff([]any{want, n, len(items), n, int(took)}, []any{asked, r.Asked, r.Wanted, r.Calls, int(r.Cost*1e6 + .5)}); d != "" || took > limit {
				t.Fatalf("limit %v, cut off after %d rounds, took %v: items asked about, their number, wanted, calls, cost (-want +got):\n%s", limit, cutOff, took, d)
			}
		}
	}
}

// TestUnbounded has items with an unknown highest cost, which cost four times the likely cost: at
// most a small round exceeds the limit.
func TestUnbounded(t *testing.T) {
	s := &service{items: slices.Repeat([]item{{confidence: .5, likely: 10, took: 40, requests: 1}}, 500), draw: rand.New(rand.NewPCG(1, 2))}
	sp := s.run(t, money(1000), book{}, 0)
	if r := sp.Report(); r.Asked != 32 || int(r.Cost*1e6+.5) != 32*40 || r.RestCalls != 468 || int(r.RestCost*1e6+.5) != 468*10 {
		t.Errorf("it took %+v", r)
	}
}

// TestAbandon: when the voter stops, the remaining items of the round keep the answers of the other
// voters. A resumed run asks about the rest.
func TestAbandon(t *testing.T) {
	items := slices.Repeat([]item{{confidence: .5, likely: 10, most: 20, took: 10, requests: 1}}, 100)
	for left, limit := range map[int]spend.Limit{60 - 25: calls(60), 600/20 - 25: money(600)} {
		s, j := &service{items: items, draw: rand.New(rand.NewPCG(1, 2)), down: 25}, book{}
		sp := s.run(t, limit, j, 0)
		missing := 0
		for n := range items {
			r := sp.Result(j, source.Row{Line: n + 1})
			if r.Answer == "" || r.Failure != nil || len(r.Missing) > 0 && r.Answer != "free" {
				t.Fatalf("item %d: %+v", n+1, r)
			}
			missing += len(r.Missing)
		}
		if missing != left || sp.Report().Asked != 25 || sp.Fresh() != 100 {
			t.Errorf("%d lack the voter, %+v", missing, sp.Report())
		}
		s.down = 0
		if sp = s.run(t, limit, j, 0); sp.Report().Asked != 60 && sp.Report().Asked != 59 || len(s.asked) > 60 {
			t.Errorf("asked %d, %+v", len(s.asked), sp.Report())
		}
	}
}

// TestOneOfTwoStops: one of two paid voters has answered an item when the other stops. The item
// keeps this answer, and a resumed run asks about it in its turn.
func TestOneOfTwoStops(t *testing.T) {
	items := slices.Repeat([]item{{confidence: .25, likely: 1, most: 4, took: 1, requests: 2}}, 2)
	s, j := &service{items: items, draw: rand.New(rand.NewPCG(1, 2))}, book{}
	sp := s.spender(calls(2))
	s.pass(t, sp, sp.Survey(j), []int{1, 2})
	if lines := sp.Round(); !slices.Equal(lines, []int{1}) {
		t.Fatalf("round %v", lines)
	}
	down := []*outcome.Failure{{Stage: "sample.other", Err: errDown}}
	one := outcome.Result{Line: 1, Answer: "paid", Verdict: result.Verdict{Confidence: .875}, Missing: down, Usages: map[string]sdk.Usage{"llm": tokens(3)}}
	must.Do(t, sp.Asking(j).Keep([]outcome.Result{one}))
	if r := sp.Report(); r.Asked != 0 || r.Wanted != 2 || r.Cost != 3e-6 {
		t.Errorf("%+v", r)
	}
	if lines := sp.Round(); len(lines) > 0 {
		t.Errorf("its turn goes to %v", lines)
	}
	if r := sp.Result(j, source.Row{Line: 1}); r.Answer != "paid" || len(r.Missing) != 1 || r.Failure != nil {
		t.Errorf("%+v", r)
	}
	sp = s.spender(calls(2))
	s.pass(t, sp, sp.Survey(j), []int{1, 2})
	if lines := sp.Round(); !slices.Equal(lines, []int{1}) { // by its gain in the first pass
		t.Errorf("a resumed run asks about %v", lines)
	}
}

// TestFailures: one item fails in each pass.
func TestFailures(t *testing.T) {
	items := slices.Repeat([]item{{confidence: .5, likely: 1, most: 1, took: 1, requests: 1}}, 3)
	s, j := &service{items: items, draw: rand.New(rand.NewPCG(1, 2))}, book{}
	sp := s.spender(calls(3))
	failure := &outcome.Failure{Stage: "sample.knn", Err: errors.New("broken")}
	survey := sp.Survey(j)
	s.pass(t, sp, survey, []int{2, 3})
	must.Do(t, survey.Keep([]outcome.Result{{Line: 1, Failure: failure}}))
	if lines := sp.Round(); !slices.Equal(lines, []int{2, 3}) {
		t.Fatalf("round %v", lines)
	}
	s.pass(t, sp, sp.Asking(j), []int{2})
	paid := &outcome.Failure{Stage: "sample.llm", Err: errors.New("refused")}
	must.Do(t, sp.Asking(j).Keep([]outcome.Result{{Line: 3, Failure: paid}}))
	one, two, three := sp.Result(j, source.Row{Line: 1}), sp.Result(j, source.Row{Line: 2}), sp.Result(j, source.Row{Line: 3})
	must.Equal(t, "the first failed as it did, answers of the others, the third lacks what was refused", []any{true, "paid", "free", true},
		[]any{one.Failure == failure, two.Answer, three.Answer, slices.Equal(three.Missing, []*outcome.Failure{paid})})
}

func TestCheck(t *testing.T) {
	voter := func(network bool) *pipeline.Stage {
		return &pipeline.Stage{Block: "sample", Kind: sdk.KindSample, Enabled: true, Info: sdk.Stage{Network: network}}
	}
	for name, test := range map[string]struct {
		voters []*pipeline.Stage
		want   string
	}{
		"both": {[]*pipeline.Stage{voter(true), voter(false)}, ""},
		"free": {[]*pipeline.Stage{voter(false)}, "no voter calls a service"},
		"paid": {[]*pipeline.Stage{voter(true)}, "every voter calls a service"},
	} {
		err := spend.Check(&pipeline.Pipeline{Stages: test.voters})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
