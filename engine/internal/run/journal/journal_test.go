package journal_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func journalBegin(t testing.TB, state string, m journal.Manifest) *journal.Journal {
	t.Helper()
	j, _, err := journal.RunsOf(state).Begin(m, journal.Options{}, journal.Retention{})
	must.Do(t, err)
	return j
}

func journalResume(t testing.TB, state, id string) *journal.Journal {
	t.Helper()
	j, err := journal.RunsOf(state).Resume(id, journal.Options{})
	must.Do(t, err)
	return j
}

// journalResults returns one result of each sort, in the order of the input.
func journalResults() []outcome.Result {
	long := []result.Vote{{Voter: "llm", Answer: "b", Weight: 1, Reason: "accept: the rule does not hold"}, {Voter: "llm", Weight: 1, Accepted: true, Reading: "without markup", Explanation: "it \"fits\"\nbest", Model: "m-1"}}
	for i := range 9 {
		long = append(long, result.Vote{Voter: "knn", Answer: fmt.Sprint(i), Weight: 1 / float64(3+i), Accepted: true})
	}
	return []outcome.Result{
		{Line: 2, ID: "a", Text: "one", Expected: "x", Answer: `quo"ted\ \t` + "\n\u2028é<&>\x7f", Verdict: result.Verdict{Agreement: 1.0 / 3, Confidence: 2.0 / 3, Flagged: true}, Votes: long, Usage: sdk.Usage{InputTokens: 1 << 60, CachedTokens: 2, OutputTokens: 3}},
		{Line: 3, ID: "b\xff", Text: "two", Verdict: result.Verdict{Reason: "no answer\tfits", Decided: &result.Decision{By: "Ada", At: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)}}},
		{Line: 5, ID: "a", Text: "three", RetrievalOnly: true, Candidates: []sdk.Candidate{
			{ID: "c", Text: "t", Label: "l", Context: "x", Meta: sdk.Meta{"a": 0.1, "b": "2", "c": true}, Score: 0.1, Dense: sdk.Unscored, Lexical: 1e-7},
			{ID: "d", Score: 3, Dense: -0.25, Lexical: sdk.Unscored},
		}},
		{Line: 6, ID: "e", Text: "which?", Answer: "It is\n\tso [2].", Verdict: result.Verdict{Agreement: 1}, Citations: []outcome.Citation{
			{Number: 2, Passage: sdk.Candidate{ID: "g#1", Meta: sdk.Meta{"path": "g.md", "first_line": 3.0, "last_line": 5.0}, Dense: sdk.Unscored, Lexical: sdk.Unscored}},
			{Number: 4, Passage: sdk.Candidate{ID: "7", Dense: sdk.Unscored, Lexical: sdk.Unscored}},
		}},
		{Line: 7, ID: "f", Text: "four", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("the model is away")}},
	}
}

// written is what the formats make of results.
func written(t *testing.T, results []outcome.Result) string {
	t.Helper()
	var out bytes.Buffer
	for _, format := range []string{output.JSONL, output.TSV, output.CSV, output.Parquet, output.Table} {
		w, err := output.NewWriter(&out, format, output.Options{})
		must.Do(t, err)
		for _, r := range results {
			must.Do(t, w.Write(r))
		}
		must.Do(t, w.Close())
	}
	return out.String()
}

// again returns the results of a later part of the run: the journal's data with the rest from the
// input.
func again(j *journal.Journal, all []outcome.Result) (found []outcome.Result) {
	for _, want := range all {
		got, ok := j.Answered(source.Row{Line: want.Line, ID: want.ID, Text: want.Text, Label: want.Expected})
		if ok {
			got.Line, got.ID, got.Text, got.Expected, got.RetrievalOnly = want.Line, want.ID, want.Text, want.Expected, want.RetrievalOnly
			found = append(found, got)
		}
	}
	return found
}

// TestFailuresDoNotAddUp resumes a run whose item fails every time.
func TestFailuresDoNotAddUp(t *testing.T) {
	state, all := t.TempDir(), journalResults()
	j := journalBegin(t, state, journal.Manifest{})
	id := j.ID()
	must.Do(t, errors.Join(j.Keep(all), j.Close(nil)))
	sizes := func() (all []int64) {
		t.Helper()
		for _, name := range []string{"journal.jsonl", "failures.jsonl"} {
			info, err := os.Stat(filepath.Join(state, "runs", id, name))
			must.Do(t, err)
			all = append(all, info.Size())
		}
		return all
	}
	before := sizes()
	for range 3 {
		j := journalResume(t, state, id)
		must.Do(t, errors.Join(j.Keep(all[4:]), j.Close(nil)))
	}
	if now := sizes(); !slices.Equal(now, before) {
		t.Errorf("the journal and its failures have %d bytes, %d at first", now, before)
	}
}

// TestProvisional: answers with a missing voter are kept separately. A resumed run asks again, even
// if that fails repeatedly.
func TestProvisional(t *testing.T) {
	state, m := t.TempDir(), journal.Manifest{File: "/p.hcl", Pipeline: "p"}
	stop := errors.New("the budget is spent")
	lacks := outcome.Result{Line: 9, ID: "g", Text: "x", Answer: "a", Verdict: result.Verdict{Agreement: 1}, Missing: []*outcome.Failure{{Stage: "sample.llm", Err: stop}}}
	j := journalBegin(t, state, m)
	for range 3 {
		totals := outcome.Totals{Items: 2, Provisional: 1, Missing: []outcome.Skipped{{Stage: "sample.llm", Items: 1, First: stop}}}
		must.Do(t, errors.Join(j.Keep([]outcome.Result{journalResults()[0], lacks}), j.Close(journal.NewTotals(totals, nil))))
		kept, err := os.ReadFile(filepath.Join(state, "runs", j.ID(), "provisional.jsonl"))
		if want := `{"line":9,"id":"g","answer":"a","agreement":1,"flagged":false,"votes":[],"missing":["sample.llm"],"sum":"3c5f3b8c"}` + "\n"; err != nil || string(kept) != want {
			t.Errorf("provisional answers %q, %v", kept, err)
		}
		if end := journal.RunsOf(state).End(j.ID()); !end.Complete || end.Provisional != 1 || end.Reason != "the budget is spent" {
			t.Errorf("end %+v", end)
		}
		if newest, ok := journal.RunsOf(state).Newest("/p.hcl", "p"); !ok || newest.ID != j.ID() {
			t.Errorf("newest %q, %v", newest.ID, ok)
		}
		j = journalResume(t, state, j.ID())
		if _, ok := j.Answered(source.Row{Line: 9, ID: "g"}); ok || j.Known() != 1 {
			t.Errorf("the item is not asked again: %d known", j.Known())
		}
	}
	must.Do(t, j.Close(journal.NewTotals(outcome.Totals{Items: 2}, nil)))
	if _, ok := journal.RunsOf(state).Newest("/p.hcl", "p"); ok {
		t.Error("a run that lacks nothing any more is offered")
	}
}

// A line whose numbers cannot be written is no answer: the item is answered again, and its new line
// counts.
func TestLinesWithoutANumber(t *testing.T) {
	state := t.TempDir()
	j := journalBegin(t, state, journal.Manifest{})
	answer := func(line int, weight, agreement float64) outcome.Result {
		return outcome.Result{Line: line, ID: "i", Answer: "a", Verdict: result.Verdict{Agreement: agreement}, Votes: []result.Vote{{Voter: "v", Answer: `"weight":null`, Weight: weight, Accepted: true}}}
	}
	must.Do(t, j.Keep([]outcome.Result{answer(2, 1, 1), answer(3, math.Inf(1), 1), answer(4, 1, math.NaN())}))
	id := j.ID()
	must.Do(t, j.Close(nil))
	j = journalResume(t, state, id)
	for line, want := range map[int]bool{2: true, 3: false, 4: false} {
		if _, ok := j.Answered(source.Row{Line: line, ID: "i"}); ok != want {
			t.Errorf("line %d is answered: %v", line, ok)
		}
	}
	must.Do(t, j.Keep([]outcome.Result{answer(3, .5, 1)}))
	must.Do(t, j.Close(nil))
	j = journalResume(t, state, id)
	defer j.Close(nil)
	if r, ok := j.Answered(source.Row{Line: 3, ID: "i"}); !ok || r.Votes[0].Weight != .5 {
		t.Errorf("got %+v, %v", r, ok)
	}
}

// TestIndex reads back what the same part of the run keeps: the later of two results of an
// item counts, and so it does for a resumed run.
func TestIndex(t *testing.T) {
	state := t.TempDir()
	first := outcome.Result{Line: 2, ID: "a", Answer: "x", Verdict: result.Verdict{Confidence: 0.25}, Unasked: &outcome.Bill{Calls: 2, Cost: 0.5, Most: 0.75, Gain: 0.75}}
	second := outcome.Result{Line: 2, ID: "a", Answer: "y", Asked: &outcome.Bill{Calls: 2, Cost: 0.125}}
	other := outcome.Result{Line: 3, ID: "b", Answer: "z", Unasked: &outcome.Bill{Calls: 1, Unbounded: true, Gain: 1}}
	row := func(r outcome.Result) source.Row { return source.Row{Line: r.Line, ID: r.ID} }
	check := func(j *journal.Journal, want outcome.Result) {
		t.Helper()
		got, ok := j.Answered(row(want))
		if !ok || got.Answer != want.Answer {
			t.Errorf("got %+v, %v", got, ok)
		}
		if d := cmp.Diff([]*outcome.Bill{want.Unasked, want.Asked}, []*outcome.Bill{got.Unasked, got.Asked}); d != "" {
			t.Error(d)
		}
	}
	j := journalBegin(t, state, journal.Manifest{})
	must.Do(t, j.Keep([]outcome.Result{{Line: 9, ID: "before", Answer: "x"}}))
	if _, ok := j.Answered(source.Row{Line: 9, ID: "before"}); ok {
		t.Error("it is read back without an index")
	}
	j.Index()
	must.Do(t, j.Keep([]outcome.Result{{Line: 8, ID: "failed", Failure: &outcome.Failure{Err: errors.New("broken")}}, first, other}))
	check(j, first)
	check(j, other)
	if _, ok := j.Answered(source.Row{Line: 8, ID: "failed"}); ok {
		t.Error("a failure counts as an answer")
	}
	must.Do(t, j.Keep([]outcome.Result{second}))
	check(j, second)
	check(j, other)
	must.Do(t, j.Close(nil))
	j = journalResume(t, state, j.ID())
	defer j.Close(nil)
	check(j, second)
	check(j, other)
	if j.Known() != 3 {
		t.Errorf("%d known", j.Known())
	}
}

// TestSeen: Seen is kept for notable items, or for all items.
func TestSeen(t *testing.T) {
	prompts := []outcome.Prompted{{Stage: "prompt.p", Prompts: []sdk.Prompt{{Text: "which?"}, {Text: "which now?"}}}}
	key := sdk.KeyOf("request")
	rules := []outcome.Rule{{Stage: "retrieve.r", Rule: outcome.RuleKeep, N: 1, Of: 3}, {Stage: "sample.llm", Rule: outcome.RuleFallback, Name: "other", Why: "it \"failed\""}}
	retries := []outcome.Retry{{Stage: "sample.llm", Why: "429", Times: 2}}
	lists := []outcome.List{
		{Stage: "retrieve.r", Candidates: []sdk.Candidate{
			{ID: "c\"1", Text: "long", Score: 0.1, Dense: 0.12345678, Lexical: sdk.Unscored}, {ID: "c2", Text: "no", Score: 0.05, Dense: 0.25, Lexical: 7.5},
			{ID: "3", Score: 0.25, Dense: 0.25, Lexical: sdk.Unscored},
		}},
		{Stage: "rerank.none"},
		{Stage: "rerank.best", Candidates: []sdk.Candidate{{ID: "c2", Score: 9, Dense: 0.25, Lexical: 7.5}, {ID: "new", Score: 1, Dense: sdk.Unscored, Lexical: sdk.Unscored}, {ID: "c\"1", Score: -1}}},
		{Stage: "retrieve.all", Whole: true, Candidates: []sdk.Candidate{{ID: "w"}, {ID: "v"}}},
		{Stage: "rerank.last", Candidates: []sdk.Candidate{{ID: "new", Score: 2}}},
	}
	result := func(line int, change func(*outcome.Result)) outcome.Result {
		r := outcome.Result{
			Line: line, ID: "i", Answer: "a", Lists: lists, Rules: rules, Retries: retries,
			Prompts: prompts, Requests: []outcome.Request{{Voter: "llm", Key: key}},
		}
		change(&r)
		return r
	}
	all := []outcome.Result{
		result(1, func(*outcome.Result) {}), result(2, func(r *outcome.Result) { r.Expected = "a" }),
		result(3, func(r *outcome.Result) { r.Expected = "b" }), result(4, func(r *outcome.Result) { r.Flagged = true }),
		result(5, func(r *outcome.Result) { r.Answer = "" }), result(6, func(r *outcome.Result) { r.Failure = &outcome.Failure{Err: io.EOF} }),
		result(7, func(r *outcome.Result) { r.Expected, r.FreeText = "b", true }), result(8, func(r *outcome.Result) { r.RetrievalOnly = true }),
	}
	want := &journal.Seen{
		Lists: journal.Lists{
			{Stage: "retrieve.r", Found: []journal.Scored{
				{ID: "c\"1", Score: 0.1, Dense: 0.1235, Lexical: sdk.Unscored}, {ID: "c2", Score: 0.05, Dense: 0.25, Lexical: 7.5}, {ID: "3", Score: 0.25, Dense: sdk.Unscored, Lexical: sdk.Unscored},
			}},
			{Stage: "rerank.best", Found: []journal.Scored{
				{ID: "c2", Score: 9, Dense: 0.25, Lexical: 7.5}, {ID: "new", Score: 1, Dense: sdk.Unscored, Lexical: sdk.Unscored}, {ID: "c\"1", Score: -1, Dense: 0.1235, Lexical: sdk.Unscored},
			}},
			{Stage: "retrieve.all", Whole: true},
			{Stage: "rerank.last", Found: []journal.Scored{{ID: "new", Score: 2, Dense: sdk.Unscored, Lexical: sdk.Unscored}}},
		},
		Rules: rules, Retries: retries,
		Prompts: map[string][]string{"prompt.p": {journal.Hash(prompts[0].Prompts[0]), journal.Hash(prompts[0].Prompts[1])}},
	}
	for keep, lines := range map[journal.Keep][]int{journal.KeepNotable: {3, 4, 5, 6}, journal.KeepAll: {1, 2, 3, 4, 5, 6, 7, 8}} {
		j, _, err := journal.RunsOf(t.TempDir()).Begin(journal.Manifest{}, journal.Options{Keep: keep}, journal.Retention{})
		must.Do(t, err)
		defer j.Close(nil)
		j.Index()
		must.Do(t, j.Keep(all))
		var got []int
		for item := range j.Kept() {
			if item.Seen == nil {
				continue
			}
			got = append(got, item.Row.Line)
			want := *want
			want.Requests = map[string][]string{"llm": {hex.EncodeToString(key[:])}}
			if item.Row.Line == 8 {
				want.Lists = want.Lists[:3] // the result has the last one
			}
			if d := cmp.Diff(&want, item.Seen, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); d != "" {
				t.Errorf("line %d (-want +got):\n%s", item.Row.Line, d)
			}
		}
		if !slices.Equal(got, lines) {
			t.Errorf("keep %s: what was seen is kept of %v, want %v", keep, got, lines)
		}
	}
	if prompts[0].Prompts[0].Text = "Which?"; journal.Hash(prompts[0].Prompts[0]) == want.Prompts["prompt.p"][0] {
		t.Error("another prompt has the same hash")
	}
}

// TestBadLists: invalid lists are refused.
func TestBadLists(t *testing.T) {
	for _, bad := range []string{`[{"stage":"s","found":[[0,1]]}]`, `[{"stage":"s","found":[["a"]]}]`, `[{"stage":"s","found":[["a",1],[1,1]]}]`, `[{"stage":"s","found":[["a","x"]]}]`} {
		if err := json.Unmarshal([]byte(bad), new(journal.Lists)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestSpentByVoter: the usage of each voter is kept, also for failed items, with their votes. Sums
// stay the same.
func TestSpentByVoter(t *testing.T) {
	usages := map[string]sdk.Usage{"a": {InputTokens: 1 << 60, OutputTokens: 2}, "b": {InputTokens: 10, CachedTokens: 4}}
	costs := map[string]float64{"a": 0.1}
	r := outcome.Result{Line: 1, ID: "1", Answer: "x", Usages: usages, Costs: costs, Usage: sdk.Usage{InputTokens: 1<<60 + 10, CachedTokens: 4, OutputTokens: 2}, Cost: 0.1}
	failed := r
	failed.Line, failed.ID, failed.Failure, failed.Votes = 2, "2", &outcome.Failure{Stage: "sample.c", Err: io.EOF}, []result.Vote{{Voter: "a", Answer: "x", Weight: 1, Accepted: true}}
	other := outcome.Result{Line: 3, ID: "3", Answer: "x", Usage: sdk.Usage{InputTokens: 5}, Cost: 2} // by an unknown voter
	state := t.TempDir()
	j := journalBegin(t, state, journal.Manifest{})
	must.Do(t, errors.Join(j.Keep([]outcome.Result{r, failed, other}), j.Close(nil)))
	text, err := os.ReadFile(filepath.Join(j.Folder(), "journal.jsonl"))
	if want := `"spent":{"a":[1152921504606846976,0,2,0.1],"b":[10,4,0]}`; err != nil || !bytes.Contains(text, []byte(want)) || bytes.Count(text, []byte(`"tokens"`)) != 1 {
		t.Errorf("%s, %v; want %s, and tokens once", text, err, want)
	}
	j, err = journal.RunsOf(state).Open(j.ID())
	must.Do(t, err)
	defer j.Close(nil)
	for item := range j.Kept() {
		got := item.Result
		switch got.Line {
		case 1, 2:
			if d := cmp.Diff(usages, got.Usages) + cmp.Diff(costs, got.Costs); d != "" {
				t.Errorf("line %d (-want +got):\n%s", got.Line, d)
			}
		default:
			if got.Usages != nil || got.Usage != other.Usage || got.Cost != other.Cost {
				t.Errorf("%+v", got)
			}
		}
		if got.Line == 1 && (got.Usage != r.Usage || got.Cost != r.Cost) || got.Line == 2 && !slices.Equal(got.Votes, failed.Votes) {
			t.Errorf("%+v", got)
		}
	}
	if again, ok := j.Answered(source.Row{Line: 1, ID: "1"}); !ok || again.Usages != nil || again.Usage != r.Usage || again.Cost != r.Cost {
		t.Errorf("a resumed run takes %+v", again)
	}
}
