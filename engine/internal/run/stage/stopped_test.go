package stage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var errStop = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget of 1.00 is spent")}

// paid is a voter with a price per answer, whose calls are refused when the money is spent.
type paid struct {
	money  atomic.Int64
	asked  atomic.Int64 // answers that were paid
	denied atomic.Int64 // refused calls
	cached map[string]bool
}

func (p *paid) vote(item sdk.Item) ([]string, error) {
	if p.cached[item.Text] {
		return []string{"paid"}, nil
	}
	if p.money.Add(-1) < 0 {
		p.denied.Add(1)
		return nil, errStop
	}
	p.asked.Add(1)
	return []string{"paid"}, nil
}

func (p *paid) stage(name string, reads ...sdk.Column) sdk.Stage {
	s := runtest.Voter(name, p.vote, reads...)
	s.Network, s.Batch = true, 1
	return s
}

// odd votes for "odd" on every other item, and for "free" on the rest.
func odd(item sdk.Item) ([]string, error) {
	if strings.HasSuffix(item.Text, "1") {
		return []string{"odd"}, nil
	}
	return []string{"free"}, nil
}

const free = `
		sample "free" { use = "free" }
		sample "odd" { use = "odd" }`

// stopping opens a pipeline with two free voters and the blocks in body.
func stopping(t *testing.T, p *paid, body string, more ...sdk.Stage) *run.Run {
	t.Helper()
	return runtest.Pipeline(t, runtest.Stages(append(more, p.stage("paid"), runtest.Voter("free", runtest.Always("free")), runtest.Voter("odd", odd))...), body)
}

func numbers(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d", i%2)
	}
	return texts
}

// part is one part of a run: what it wrote as JSONL, and how it ended. It is cut off after cutOff
// results; 0: it is not.
func part(t *testing.T, r *run.Run, j run.Journal, texts []string, cutOff int) (string, outcome.Totals, error) {
	t.Helper()
	var out bytes.Buffer
	w := must.Get(output.NewWriter(&out, output.JSONL, output.Options{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	written := 0
	totals, err := r.Items(ctx, runtest.Feed(texts...), j, runtest.Each(func(result outcome.Result) error {
		if written++; written == cutOff {
			cancel()
		}
		return w.Write(result)
	}))
	must.Do(t, w.Flush())
	return out.String(), totals, err
}

// TestAVoterStops spends the money in the middle of a run: every item is answered by the other
// voters, items with a missing voter are marked, and the resumed run asks only about these. Then
// the output is the same as that of an undisturbed run.
func TestAVoterStops(t *testing.T) {
	const items, money = 400, 90
	tests := map[string]struct {
		arguments string
		asks      int // items that the paid voter is asked about
	}{
		"fail":      {"", items},
		"skip":      {`on_error = "skip"`, items},
		"cascade":   {`when = "margin < 0.5"`, items / 2},
		"resamples": {"resamples = 2", items},
		"fall back": {"fallback \"odd\" {\n when = \"failed\"\n use = \"odd\"\n }", items},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body := free + `
		sample "v" {
			use     = "paid"
			workers = 1
			` + test.arguments + `
		}
		elect "e" { use = "majority" }`
			rich := &paid{}
			rich.money.Store(items)
			want, _, err := part(t, stopping(t, rich, body), nil, numbers(items), 0)
			if err != nil || strings.Count(want, "\n") != items || int(rich.asked.Load()) != test.asks {
				t.Fatalf("undisturbed: %d asked, %v", rich.asked.Load(), err)
			}
			state := t.TempDir()
			j, _, err := journal.RunsOf(state).Begin(journal.Manifest{}, journal.Options{}, journal.Retention{})
			must.Do(t, err)
			p := &paid{}
			p.money.Store(money)
			got, totals, err := part(t, stopping(t, p, body), j, numbers(items), 0)
			must.Do(t, err)
			checkMissing(t, got, want)
			missing := strings.Count(got, `"missing":["sample.v"]`)
			must.Equal(t, "items, answered, left, provisional, skipped stages", [5]int{items, items, 0, missing, 0}, [5]int{totals.Items, totals.Answered, totals.Left, totals.Provisional, len(totals.Skipped)})
			if m := totals.Missing; len(m) != 1 || m[0].Stage != "sample.v" || m[0].Items != missing || m[0].First.Error() != errStop.Error() {
				t.Errorf("missing %+v", m)
			}
			if missing != test.asks-int(p.asked.Load()) || p.denied.Load() != 1 {
				t.Errorf("%d lack the voter, which answered %d of %d and was called %d times more", missing, p.asked.Load(), test.asks, p.denied.Load())
			}
			must.Do(t, j.Close(journal.NewTotals(totals, nil)))
			if end := journal.RunsOf(state).End(j.ID()); !end.Complete || !end.Unfinished() || end.Provisional != missing || !strings.Contains(end.Reason, "budget") {
				t.Errorf("end %+v", end)
			}

			// A resumed run is cut off; the next one completes it.
			for _, cutOff := range []int{items / 2, 0} {
				j = must.Get(journal.RunsOf(state).Resume(j.ID(), journal.Options{}))(t)
				p, known := &paid{}, j.Known() // calls of the previous part may still be in progress
				p.money.Store(items)
				got, totals, err = part(t, stopping(t, p, body), j, numbers(items), cutOff)
				if cutOff > 0 && !errors.Is(err, context.Canceled) || cutOff == 0 && err != nil {
					t.Fatal(err)
				}
				if known < items-missing || int(p.asked.Load()) > items-known {
					t.Errorf("%d asked, %d known of %d, of which %d lacked the voter", p.asked.Load(), known, items, missing)
				}
				must.Do(t, j.Close(nil))
			}
			if got != want || totals.Provisional != 0 || len(totals.Missing) != 0 {
				t.Errorf("another output than that of a run that nothing disturbed; totals %+v", totals)
			}
		})
	}
}

// checkMissing compares an output with that of an undisturbed run: in order, equal for items
// without a missing voter, and otherwise without the vote of v.
func checkMissing(t *testing.T, got, want string) {
	t.Helper()
	lines, wants := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(lines) != len(wants) {
		t.Fatalf("%d lines, want %d", len(lines), len(wants))
	}
	for i, line := range lines {
		if line == wants[i] {
			continue
		}
		id, _, _ := strings.Cut(wants[i], ",")
		if !strings.HasPrefix(line, id+",") || strings.Contains(line, `"answer":null`) ||
			!strings.Contains(line, `"missing":["sample.v"]`) || strings.Contains(line, `"voter":"v"`) || !strings.Contains(wants[i], `"voter":"v"`) {
			t.Errorf("line %d\n%s\nundisturbed\n%s", i+1, line, wants[i])
		}
	}
}

// stopsAt is a prompt stage that records its items and stops after a given number.
type stopsAt struct {
	money atomic.Int64
	seen  atomic.Int64
}

func (p *stopsAt) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	p.seen.Add(int64(len(b.Items)))
	all, failed := make([][]sdk.Prompt, len(b.Items)), sdk.RowErrors{}
	for i := range all {
		all[i] = []sdk.Prompt{{Text: "?"}}
		if p.money.Add(-1) < 0 {
			failed[i] = errStop
		}
	}
	if len(failed) > 0 {
		return all, failed
	}
	return all, nil
}

func (p *stopsAt) stage() sdk.Stage {
	return sdk.PromptStage("ask", "A prompt of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) { return p, nil }, sdk.Reads(sdk.ColumnText))
}

// TestWhatStopsWithAVoter checks the stages above and below a stopped stage.
func TestWhatStopsWithAVoter(t *testing.T) {
	const items = 2000
	voteAndElect := `
		sample "v" {
			use     = "llm"
			workers = 1
		}
		elect "e" { use = "majority" }`
	t.Run("its prompts are not made", func(t *testing.T) {
		p, prompts := &paid{}, &stopsAt{}
		p.money.Store(20)
		prompts.money.Store(items)
		r := stopping(t, p, free+"\nprompt \"p\" { use = \"ask\" }"+voteAndElect, prompts.stage(), p.stage("llm", sdk.ColumnPrompts))
		_, totals, err := part(t, r, nil, numbers(items), 0)
		if err != nil || totals.Provisional != items-20 {
			t.Errorf("totals %+v, %v", totals, err)
		}
		if made := prompts.seen.Load(); made > 20+256+8 { // items under way
			t.Errorf("%d prompts for 20 answers", made)
		}
	})
	t.Run("its prompt stops", func(t *testing.T) {
		p, prompts := &paid{}, &stopsAt{}
		p.money.Store(items)
		prompts.money.Store(20)
		r := stopping(t, p, free+"\nprompt \"p\" { use = \"ask\" }"+voteAndElect, prompts.stage(), p.stage("llm", sdk.ColumnPrompts))
		_, totals, err := part(t, r, nil, numbers(items), 0)
		if err != nil || totals.Answered != items || totals.Provisional != items-int(p.asked.Load()) || p.asked.Load() != 20 {
			t.Errorf("%d asked, totals %+v, %v", p.asked.Load(), totals, err)
		}
		must.Equal(t, "missing", []outcome.Skipped{{Stage: "sample.v", Items: items - 20}, {Stage: "prompt.p"}}, totals.Missing, cmpopts.IgnoreFields(outcome.Skipped{}, "First"))
	})
	t.Run("a voter whose rule asks for its votes", func(t *testing.T) {
		p, judge := &paid{}, &paid{}
		p.money.Store(20)
		judge.money.Store(items)
		r := stopping(t, p, free+`
		sample "v" {
			use     = "paid"
			workers = 1
		}
		sample "judge" {
			use  = "judge"
			when = "margin < 0.5"
		}
		elect "e" { use = "majority" }`, judge.stage("judge"))
		_, totals, err := part(t, r, nil, numbers(items), 0)
		if err != nil || totals.Provisional != items-20 {
			t.Errorf("totals %+v, %v", totals, err)
		}
		if m := totals.Missing; len(m) != 2 || m[0].Items != m[1].Items || m[1].Stage != "sample.judge" {
			t.Errorf("missing %+v", m)
		}
	})
	t.Run("a rule that names another voter", func(t *testing.T) {
		p := &paid{}
		p.money.Store(20)
		flag := `{
			use  = "majority"
			flag = "any(votes, .voter == 'free' and not .accepted)"
		}`
		_, totals, err := part(t, stopping(t, p, free+strings.Replace(strings.Replace(voteAndElect, "llm", "paid", 1), `{ use = "majority" }`, flag, 1)), nil, numbers(items), 0)
		if err != nil || totals.Answered != items || totals.Provisional != items-20 {
			t.Errorf("totals %+v, %v", totals, err)
		}
	})
	t.Run("a rule that it is not needed for", func(t *testing.T) {
		p, prompts := &paid{}, &stopsAt{}
		p.money.Store(items)
		r := stopping(t, p, free+"\nprompt \"p\" { use = \"ask\" }\n"+
			strings.Replace(voteAndElect, "workers = 1", `when = "margin < 0.5"`, 1), prompts.stage(), p.stage("llm", sdk.ColumnPrompts))
		_, totals, err := part(t, r, nil, numbers(items), 0)
		if err != nil || totals.Answered != items || totals.Provisional != items/2 {
			t.Errorf("totals %+v, %v", totals, err)
		}
	})
}

// TestWhatTheCacheHolds stops a voter in the middle of a batch. If none of its calls reaches its
// service any more, the voter is still asked about the rest of the batch, but about no later item.
func TestWhatTheCacheHolds(t *testing.T) {
	const batch, money = 64, 10
	for name, refuses := range map[string]bool{"its calls are refused": true, "they are not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &paid{cached: map[string]bool{}}
				p.money.Store(money)
				texts := make([]string, 2*batch)
				for i := range texts {
					texts[i] = fmt.Sprint(i)
					p.cached[texts[i]] = i%2 == 0
				}
				var other atomic.Bool
				r := runtest.PipelineWith(t, runtest.Stages(p.stage("paid"), runtest.Voter("free", runtest.Always("free"))), run.Options{Options: stage.Options{Refuses: func(s *pipeline.Stage) bool {
					if s.Block+"."+s.Name != "sample.v" {
						other.Store(true)
					}
					return refuses
				}}}, `
					batch = 64
					sample "free" { use = "free" }
					sample "v" {
						use     = "paid"
						workers = 1
					}
					elect "e" { use = "majority" }`)
				first, once := make(chan struct{}), sync.Once{}
				all, n := runtest.Feed(texts...), 0
				next := func() (source.Row, error) {
					if n++; n > batch {
						<-first
					}
					return all()
				}
				answered := 0
				totals, err := r.Items(t.Context(), next, nil, func(results []outcome.Result) error {
					for _, result := range results {
						if len(result.Missing) == 0 {
							answered++
						}
					}
					once.Do(func() { close(first) })
					return nil
				})
				if err != nil || totals.Items != 2*batch || totals.Provisional != 2*batch-answered {
					t.Fatalf("totals %+v, %v", totals, err)
				}
				if refuses && (answered != batch/2+money || p.denied.Load() != batch/2-money || other.Load()) {
					t.Errorf("%d answered, %d calls in vain", answered, p.denied.Load())
				}
				if !refuses && p.denied.Load() != 1 {
					t.Errorf("it was called %d times after it had to stop", p.denied.Load()-1)
				}
			})
		})
	}
}

// TestTheRunEndsWithAStage: if the election cannot be held without a stopped stage, no more items
// are read.
func TestTheRunEndsWithAStage(t *testing.T) {
	const items = 5000
	one := `
		sample "v" {
			use     = "paid"
			workers = 1
		}
		elect "e" { use = "majority" }`
	tests := map[string]struct {
		body   string
		strict bool
	}{
		"the only voter":        {one, false},
		"figures of one method": {free + one, true},
		"one voter after the other": {strings.Replace(one, "elect", `
		sample "w" {
			use     = "paid"
			workers = 1
		}
		elect`, 1), false},
		"the others abstain": {`
		retrieve "near" {
			from  = knowledge.k
			whole = "true"
		}
		sample "knn" { use = "neighbours" }` + one, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &paid{}
			p.money.Store(50)
			r := runtest.PipelineWith(t, runtest.Stages(p.stage("paid"), runtest.Voter("free", runtest.Always("free")), runtest.Voter("odd", odd)), run.Options{Options: stage.Options{Strict: test.strict}}, test.body)
			out, totals, err := part(t, r, nil, numbers(items), 0)
			must.Equal(t, "code of the error, failed items", []any{sdk.CodeStopped, 0}, []any{sdk.CodeOf(err), totals.Failed})
			if totals.Left == 0 || totals.Items > 50 || totals.Items+totals.Left > 600 {
				t.Errorf("%d items left, %d not", totals.Left, totals.Items)
			}
			if name != "one voter after the other" && strings.Contains(out, "missing") {
				t.Errorf("an answer without the voter:\n%s", out)
			}
		})
	}
	t.Run("retrieval only", func(t *testing.T) {
		var asked atomic.Int64
		stage := sdk.RerankStage("paid", "A reranker of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Reranker, error) {
			return reranker(func(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
				if asked.Add(1) > 20 {
					return nil, errStop
				}
				return make([][]sdk.Ranked, len(b.Items)), nil
			}), nil
		}, sdk.Network(), sdk.PreferBatch(1))
		r := runtest.Pipeline(t, runtest.Stages(stage), `
		retrieve "near" { from = knowledge.k }
		rerank "best" {
			use     = "paid"
			workers = 1
		}`)
		_, totals, err := part(t, r, nil, numbers(items), 0)
		if sdk.CodeOf(err) != sdk.CodeStopped || totals.Left == 0 || totals.Items != 20 {
			t.Errorf("totals %+v, %v", totals, err)
		}
	})
}

type reranker func(context.Context, sdk.Batch) ([][]sdk.Ranked, error)

func (f reranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) { return f(ctx, b) }

// TestNoAnswerFromTheOthers: items that would be undecided only because a voter is missing are left
// unanswered. That no label fits is an answer.
func TestNoAnswerFromTheOthers(t *testing.T) {
	texts := []string{"label", "silence", "none", "label", "silence"}
	other := runtest.Voter("other", func(item sdk.Item) ([]string, error) {
		switch item.Text {
		case "silence":
			return nil, nil
		case "none":
			return []string{""}, nil
		}
		return []string{"x"}, nil
	})
	var got []string
	r := runtest.Pipeline(t, runtest.Stages(other, (&paid{}).stage("paid")), `
		sample "other" { use = "other" }
		sample "v" { use = "paid" }
		elect "e" { use = "majority" }`)
	results, totals := runtest.Taken(t, r, runtest.Feed(texts...))
	for _, result := range results {
		if !slices.Equal(result.Without(), []string{"sample.v"}) {
			t.Errorf("%+v", result)
		}
		got = append(got, result.Text+" "+result.Answer)
	}
	runtest.Want(t, got, "label x", "none ", "label x")
	if totals.Left != 2 || totals.Provisional != 3 || totals.Items != 3 || totals.Undecided != 1 {
		t.Errorf("totals %+v", totals)
	}
}

// TestAServiceThatCannotAnswer: a voter's service cannot be asked about some items. The voter is missing only for
// these, nothing fails, and they may be asked again. A fallback or on_error in the file takes precedence.
func TestAServiceThatCannotAnswer(t *testing.T) {
	others := func(item sdk.Item) ([]string, error) {
		if item.Text == "silence" {
			return nil, nil
		}
		return []string{"x"}, nil
	}
	two := `
		sample "other" { use = "other" }
		sample "v" {
			use = "llm"
			MORE
		}
		elect "e" { use = "majority" }`
	one := strings.Replace(two, `sample "other" { use = "other" }`, "", 1)
	fallback := "fallback \"other\" {\n when = \"failed\"\n use = \"other\"\n }"
	for name, test := range map[string]struct {
		body, more         string
		network, strict    bool
		provisional, later int
		left, failed       int
		hours              bool // the service asks to wait for longer than a run waits
	}{
		"others vote":       {body: two, network: true, provisional: 2, left: 1, later: 3},
		"the only voter":    {body: one, network: true, left: 3, later: 3},
		"figures":           {body: two, network: true, strict: true, left: 3, later: 3},
		"skip":              {body: two, more: `on_error = "skip"`, network: true},
		"fall back":         {body: two, more: fallback, network: true},
		"without a service": {body: two, failed: 3},

		"others vote, hours":       {body: two, network: true, hours: true, provisional: 2, left: 1, later: 3},
		"the only voter, hours":    {body: one, network: true, hours: true, left: 3, later: 3},
		"figures, hours":           {body: two, network: true, hours: true, strict: true, left: 3, later: 3},
		"skip, hours":              {body: two, more: `on_error = "skip"`, network: true, hours: true},
		"fall back, hours":         {body: two, more: fallback, network: true, hours: true},
		"without a service, hours": {body: two, hours: true, failed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			down, asked := true, 0
			llm := runtest.Voter("llm", func(item sdk.Item) ([]string, error) {
				asked++
				switch {
				case item.Text == "cached" || !down:
				case test.hours:
					return nil, sdk.Transient(errors.New("the service is busy"), 3*time.Hour)
				default:
					return nil, &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("the service is down")}
				}
				return []string{"x"}, nil
			})
			llm.Network, llm.Batch = test.network, 1
			r := runtest.PipelineWith(t, runtest.Stages(llm, runtest.Voter("other", others)), run.Options{Options: stage.Options{Strict: test.strict}}, strings.Replace(test.body, "MORE", "workers = 1\n"+test.more, 1))
			var later []int
			r.OnLater(func(line int) { later = append(later, line) })
			texts := []string{"cached", "a", "silence", "b"}
			_, totals, err := part(t, r, nil, texts, 0)
			must.Do(t, err)
			must.Equal(t, "provisional, left, failed, asked for later, asked", [5]int{test.provisional, test.left, test.failed, test.later, 4}, [5]int{totals.Provisional, totals.Left, totals.Failed, len(later), asked})
			if m := totals.Missing; (test.later > 0) != (len(m) == 1) || len(m) == 1 && (m[0].Stage != "sample.v" || m[0].Items != test.provisional || m[0].Left != test.left) {
				t.Errorf("missing %+v", m)
			}
			down, later = false, nil
			if _, totals, err = part(t, r, nil, texts, 0); err != nil || totals.Answered != 4 || len(totals.Missing)+len(later) > 0 {
				t.Errorf("with the service back: later %v, totals %+v, %v", later, totals, err)
			}
		})
	}
}
