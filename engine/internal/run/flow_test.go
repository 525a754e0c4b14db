package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// service is a voter over the network with one item per call, limited concurrent calls, and a
// latency per call.
type service struct {
	takes    time.Duration
	slots    chan struct{}
	calls    atomic.Int64
	busy     atomic.Bool // the first call is refused, to be retried
	wait     time.Duration
	most     atomic.Int64
	underway atomic.Int64
}

func (s *service) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	if len(b.Items) != 1 {
		return nil, fmt.Errorf("%d items in a call", len(b.Items))
	}
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	s.most.Store(max(s.most.Load(), s.underway.Add(1)))
	defer s.underway.Add(-1)
	s.calls.Add(1)
	if s.wait > 0 && s.busy.CompareAndSwap(false, true) {
		return nil, sdk.Transient(errors.New("come back later"), s.wait)
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return [][]sdk.Sample{{{Answers: []sdk.Answer{{Label: "x", Weight: 1}}}}}, nil
}

func (s *service) stage() sdk.Stage {
	return sdk.SampleStage("service", "A voter of the test.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return s, nil },
		sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.PreferBatch(1))
}

// TestTheServiceIsKeptBusy measures how close a run comes to the rate that a service allows: 64
// concurrent calls of 150 ms.
func TestTheServiceIsKeptBusy(t *testing.T) {
	const items, atOnce, takes = 640, 64, 150 * time.Millisecond
	const limit = "workers = 96\n"
	tests := map[string]struct {
		when string
		part int // one in part items goes to the service
		wait time.Duration
	}{
		"every item":             {"", 1, 0},
		"one in five":            {`when = "item.text endsWith \"0\" or item.text endsWith \"5\""`, 5, 0},
		"the first has to wait":  {"", 1, time.Second},
		"one in five, with wait": {`when = "item.text endsWith \"0\" or item.text endsWith \"5\""`, 5, time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{takes: takes, slots: make(chan struct{}, atOnce), wait: test.wait}
				r := runtest.Pipeline(t, runtest.Stages(s.stage(), runtest.Voter("cheap", runtest.Always("y"))), `
				sample "cheap" { use = "cheap" }
				sample "llm" {
					use = "service"
					`+limit+test.when+`
				}
				elect "e" { use = "majority" }`)
				texts := make([]string, items*test.part)
				for i := range texts {
					texts[i] = fmt.Sprint(i)
				}
				start := time.Now()
				n := 0
				totals, err := r.Items(t.Context(), runtest.Feed(texts...), nil, runtest.Each(func(result outcome.Result) error {
					if result.Text != texts[n] {
						t.Errorf("result %d is of %s", n, result.Text)
					}
					n++
					return nil
				}))
				took := time.Since(start)
				if err != nil || totals.Answered != len(texts) {
					t.Fatalf("%d answered, %d failed, %v", totals.Answered, totals.Failed, err)
				}
				ideal := items / atOnce * takes
				t.Logf("%.1f %% of the ideal rate, at most %d at once", 100*ideal.Seconds()/took.Seconds(), s.most.Load())
				if took > ideal*11/10+test.wait/10 {
					t.Errorf("it took %v, ideally %v", took, ideal)
				}
			})
		})
	}
}

// TestLocalStagesAreSpared: a local stage gets few concurrent calls even if there are many small
// batches.
func TestLocalStagesAreSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int64
		local := runtest.Voter("local", func(sdk.Item) ([]string, error) { return []string{"x"}, nil })
		counted := sdk.SampleStage("counted", "A voter of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
			return sampler(func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
				most.Store(max(most.Load(), under.Add(1)))
				defer under.Add(-1)
				time.Sleep(2 * time.Millisecond)
				return make([][]sdk.Sample, len(b.Items)), nil
			}), nil
		}, sdk.Reads(sdk.ColumnText))
		s := &service{takes: time.Millisecond, slots: make(chan struct{}, 8)}
		r := runtest.Pipeline(t, runtest.Stages(local, counted, s.stage()), `
		sample "local" { use = "local" }
		sample "counted" { use = "counted" }
		sample "llm" { use = "service" }
		elect "e" { use = "majority" }`)
		runtest.Answers(t, r, make([]string, 500)...)
		if got := most.Load(); got > 4 || got < 2 {
			t.Errorf("a local stage got %d calls at a time", got)
		}
	})
}

// TestTries: a voter is asked again if no answer is accepted, and all votes are kept.
func TestTries(t *testing.T) {
	var mu sync.Mutex
	drawn := map[string][]int{}
	rejected := map[string][][]sdk.Rejection{}
	hesitant := sdk.SampleStage("hesitant", "A voter of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
		return sampler(func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			samples := make([][]sdk.Sample, len(b.Items))
			for i, item := range b.Items {
				mu.Lock()
				drawn[item.Text] = append(drawn[item.Text], item.Drawn)
				rejected[item.Text] = append(rejected[item.Text], item.Rejected)
				mu.Unlock()
				if item.Text == "abstains" {
					continue
				}
				refused := sdk.Answer{Label: "sorry", Weight: 1, Reason: "refused"}
				samples[i] = []sdk.Sample{{Answers: []sdk.Answer{refused}}, {Answers: []sdk.Answer{{Label: "off-list", Weight: 1, Reading: "without quotes", Explanation: "it seems so"}}, Text: "\"off-list\"", Model: "m"}}
				if item.Text == "at once" || item.Text == "second" && item.Drawn == 2 {
					samples[i][1].Answers[0].Label = "x"
				}
				if item.Text == "none fits" {
					samples[i][1].Answers[0].Label = ""
				}
			}
			return samples, nil
		}), nil
	}, sdk.Reads(sdk.ColumnText))
	r := runtest.Pipeline(t, runtest.Stages(hesitant), `
		sample "v" {
			use    = "hesitant"
			n      = 2
			resamples = 2
			accept = "answer == \"x\""
		}
		elect "e" { use = "majority" }`)
	votes := map[string][]result.Vote{}
	for _, result := range runtest.Answered(t, r, "at once", "second", "never", "none fits", "abstains") {
		votes[result.Text] = result.Votes
		if want := result.Text == "at once" || result.Text == "second"; want != (result.Answer == "x") {
			t.Errorf("%s: answer %q, %v", result.Text, result.Answer, result.Failure)
		}
	}
	for text, want := range map[string][]int{"at once": {0}, "second": {0, 2}, "never": {0, 2, 4}, "none fits": {0}, "abstains": {0}} {
		if !slices.Equal(drawn[text], want) {
			t.Errorf("%s was asked with %v samples before, want %v", text, drawn[text], want)
		}
	}
	refused, dropped := result.Vote{Voter: "v", Answer: "sorry", Weight: 1, Reason: "refused"},
		result.Vote{Voter: "v", Answer: "off-list", Weight: 1, Reason: "accept: the rule does not hold", Reading: "without quotes", Explanation: "it seems so", Model: "m"}
	accepted, none := dropped, dropped
	accepted.Answer, accepted.Accepted, accepted.Reason = "x", true, ""
	none.Answer, none.Accepted, none.Reason = "", true, ""
	for text, want := range map[string][]result.Vote{
		"second":    {refused, dropped, refused, accepted},
		"never":     {refused, dropped, refused, dropped, refused, dropped},
		"none fits": {refused, none},
	} {
		if !slices.Equal(votes[text], want) {
			t.Errorf("%s: votes %+v", text, votes[text])
		}
	}
	shown := []sdk.Rejection{{Text: "sorry", Reason: "refused"}, {Text: `"off-list"`, Reason: `"off-list" is not one of the answers that are accepted`}}
	for text, want := range map[string][][]sdk.Rejection{
		"at once": {nil}, "second": {nil, shown}, "never": {nil, shown, slices.Concat(shown, shown)}, "none fits": {nil},
	} {
		if !slices.EqualFunc(rejected[text], want, slices.Equal) {
			t.Errorf("%s: the voter was shown %q, want %q", text, rejected[text], want)
		}
	}
}

// TestUnavailable: the fallback takes over immediately.
func TestUnavailable(t *testing.T) {
	var calls atomic.Int64
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("down", func(sdk.Item) ([]string, error) {
		calls.Add(1)
		return nil, &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("the service is down")}
	}), runtest.Voter("other", runtest.Always("x"))), `
		sample "v" {
			use     = "down"
			retries = 3
			fallback "other" {
				when = "failed"
				use  = "other"
			}
		}
		elect "e" { use = "majority" }`)
	runtest.Want(t, runtest.Answers(t, r, "a"), "x")
	if calls.Load() != 1 {
		t.Errorf("asked %d times", calls.Load())
	}
}

// TestTheEndOfTheBudget stops a voter while an item waits for a retry: the wait ends, nothing
// fails, no fallback takes over, and the other voter answers.
func TestTheEndOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		paid := runtest.Voter("paid", func(item sdk.Item) ([]string, error) {
			if item.Text == "busy" { // it would come back long after the budget is spent
				return nil, sdk.Transient(errors.New("busy"), 30*time.Second)
			}
			if asked.Add(1) > 20 {
				return nil, &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
			}
			return []string{"x"}, nil
		})
		paid.Network, paid.Batch = true, 1
		r := runtest.Pipeline(t, runtest.Stages(paid, runtest.Voter("other", runtest.Always("z")), runtest.Voter("free", runtest.Always("y"))), `
		sample "free" { use = "free" }
		sample "v" {
			use      = "paid"
			workers  = 1
			on_error = "skip"
			when     = "item.text != \"free\""
			fallback "other" {
				when = "failed"
				use  = "other"
			}
		}
		elect "e" { use = "majority" }`)
		texts := make([]string, 10000)
		for i := range texts {
			texts[i] = fmt.Sprintf("%d", i)
			if i%2 == 1 {
				texts[i] = "free"
			}
		}
		texts[2] = "busy"
		got := map[string]int{}
		start := time.Now()
		totals, err := r.Items(t.Context(), runtest.Feed(texts...), nil, runtest.Each(func(result outcome.Result) error {
			if result.Failure != nil {
				t.Errorf("%s failed: %v", result.Text, result.Failure)
			}
			if result.Text == "free" {
				got["free"]++
			} else {
				got["paid"]++
			}
			voted := result.Votes[len(result.Votes)-1].Answer
			if len(result.Missing) > 0 {
				got["missing"]++
			}
			if result.Text == "free" && len(result.Missing) > 0 || voted == "z" || result.Text == "busy" && (voted != "y" || len(result.Missing) == 0) {
				t.Errorf("got %+v", result)
			}
			return nil
		}))
		must.Do(t, err)
		must.Equal(t, "paid, missing, provisional, failed, left", [5]int{5000, 4980, 4980, 0, 0}, [5]int{got["paid"], got["missing"], totals.Provisional, totals.Failed, totals.Left})
		if took := time.Since(start); took > 10*time.Second || asked.Load() != 21 {
			t.Errorf("it took %v, and %d calls", took, asked.Load())
		}
	})
}
