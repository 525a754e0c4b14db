package journal_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestSeen keeps what was seen of those items that a person may ask about, or of all.
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
		j, _, err := runs.Of(t.TempDir()).Begin(manifest.Manifest{}, journal.Options{Keep: keep}, runs.Retention{})
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

// TestOlderSeen reads what an older racflow kept: the candidates of the last stage alone.
func TestOlderSeen(t *testing.T) {
	var seen journal.Seen
	must.Do(t, json.Unmarshal([]byte(`{"candidates":[["a",0.5],["7",2]]}`), &seen))
	want := []journal.Scored{{ID: "a", Score: 0.5, Dense: sdk.Unscored, Lexical: sdk.Unscored}, {ID: "7", Score: 2, Dense: sdk.Unscored, Lexical: sdk.Unscored}}
	if d := cmp.Diff(want, seen.Candidates, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{`[{"stage":"s","found":[[0,1]]}]`, `[{"stage":"s","found":[["a"]]}]`, `[{"stage":"s","found":[["a",1],[1,1]]}]`, `[{"stage":"s","found":[["a","x"]]}]`} {
		if err := json.Unmarshal([]byte(bad), new(journal.Lists)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestSpentByVoter keeps what each voter took, of items that failed as well, and what their
// voters said; sums are as they were.
func TestSpentByVoter(t *testing.T) {
	usages := map[string]sdk.Usage{"a": {InputTokens: 1 << 60, OutputTokens: 2}, "b": {InputTokens: 10, CachedTokens: 4}}
	costs := map[string]float64{"a": 0.1}
	r := outcome.Result{Line: 1, ID: "1", Answer: "x", Usages: usages, Costs: costs, Usage: sdk.Usage{InputTokens: 1<<60 + 10, CachedTokens: 4, OutputTokens: 2}, Cost: 0.1}
	failed := r
	failed.Line, failed.ID, failed.Failure, failed.Votes = 2, "2", &outcome.Failure{Stage: "sample.c", Err: io.EOF}, []outcome.Vote{{Voter: "a", Answer: "x", Weight: 1, Accepted: true}}
	other := outcome.Result{Line: 3, ID: "3", Answer: "x", Usage: sdk.Usage{InputTokens: 5}, Cost: 2} // of whom, nobody knows
	state := t.TempDir()
	j := begin(t, state, manifest.Manifest{})
	must.Do(t, errors.Join(j.Keep([]outcome.Result{r, failed, other}), j.Close(nil)))
	text, err := os.ReadFile(filepath.Join(j.Folder(), "journal.jsonl"))
	if want := `"spent":{"a":[1152921504606846976,0,2,0.1],"b":[10,4,0]}`; err != nil || !bytes.Contains(text, []byte(want)) || bytes.Count(text, []byte(`"tokens"`)) != 1 {
		t.Errorf("%s, %v; want %s, and tokens once", text, err, want)
	}
	j, err = runs.Of(state).Open(j.ID())
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
