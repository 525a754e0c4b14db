package run_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// withDecisions is the knowledge with a file of people's decisions.
var withDecisions = []string{`source { path = "rows.tsv" }`, `source { path = "rows.tsv" }
  source {
    path     = "reviewed.jsonl"
    reviewed = true
  }`}

// TestDecided: an item with the text of a decision gets the decided answer, without any stage. An
// item with a similar text does not.
func TestDecided(t *testing.T) {
	var asked atomic.Int32
	c := runtest.Stages(runtest.Voter("counts", func(sdk.Item) ([]string, error) {
		asked.Add(1)
		return []string{"fruit"}, nil
	}))
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	dir := runtest.Folder(t, runtest.Files(`
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "v" { use = "counts" }
  elect "e" { use = "soft" }`, withDecisions...))
	must.Do(t, reviewed.Write(filepath.Join(dir, "reviewed.jsonl"), nil, []reviewed.Row{
		{Text: "a Flying  saucer", Label: "vehicle", Reviewer: "Ada", ReviewedAt: at},
		{Text: "fast car", Label: "toy", ReviewedAt: at, Replaces: "none"}, // the row is gone, but the decision holds
		{Text: "old train", Replaces: "none too"},
	}))
	o := run.Options{Launch: runtest.Launch(t, dir)}
	o.Lists = true
	r := must.Get(run.Open(t.Context(), runtest.Load(t, c, dir).Pipelines[0], o))(t)
	rows := []source.Row{
		{Line: 1, ID: "a", Text: "A flying saucer", Label: "fruit"}, {Line: 2, ID: "b", Text: "flying saucer"},
		{Line: 3, ID: "c", Text: " FAST car"}, {Line: 4, ID: "d", Text: "old train"},
	}
	got, totals := runtest.Taken(t, r, runtest.Rows(rows...))
	if len(got) != 4 || totals.Decided != 2 || totals.Answered != 4 || totals.Items != 4 {
		t.Fatalf("%d results, %+v", len(got), totals)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the voter was asked about %d items", n)
	}
	for i, want := range []struct{ answer, reason string }{
		{"vehicle", "decided by Ada on 2026-11-23"}, {"fruit", ""}, {"toy", "decided by a person on 2026-11-23"}, {"fruit", ""},
	} {
		one := got[i]
		must.Equal(t, "item "+one.ID, []any{want.answer, want.reason, want.reason != "", rows[i].ID, rows[i].Label}, []any{one.Answer, one.Reason, one.Decided != nil, one.ID, one.Expected})
		if one.Decided != nil {
			must.Equal(t, one.ID+": agreement, confidence, flagged, votes and candidates, decided at", []any{1., 1., false, 0, at}, []any{one.Agreement, one.Confidence, one.Flagged, len(one.Votes) + len(one.Candidates) + len(one.Lists), one.Decided.At})
		}
	}
	// Its candidates can still be retrieved, and the decision is an entry now.
	found := must.Get(r.Found(t.Context(), rows[0]))(t)
	must.Equal(t, "number found", 3, len(found))
	must.Equal(t, "the first that is found", []any{reviewed.ID("a Flying  saucer", ""), "vehicle", "Ada"}, []any{found[0].ID, found[0].Label, found[0].Meta["reviewer"]})
}

// TestDecisionsAreHeldOut: an election that learns from votes on rows of the knowledge learns from
// votes on decisions, too; the decisions do not replace the votes.
func TestDecisionsAreHeldOut(t *testing.T) {
	dir := runtest.Folder(t, runtest.Files(`
  retrieve "near" { from = knowledge.k }
  sample "v" { use = "neighbours" }
  elect "e" { use = "witness" }`, withDecisions...))
	must.Do(t, reviewed.Write(filepath.Join(dir, "reviewed.jsonl"), nil, []reviewed.Row{{Text: "slow car", Label: "vehicle"}}))
	o := run.Options{Launch: runtest.Launch(t, dir)}
	o.Fitted = t.TempDir()
	r := must.Get(run.Open(t.Context(), runtest.Load(t, enginetest.Stages(), dir).Pipelines[0], o))(t)
	n := 0
	held, _, done, err := r.HeldOut(t.Context(), 7, o.Launch, runtest.Each(func(r outcome.Result) error {
		if n++; r.Decided != nil || len(r.Votes) == 0 {
			t.Errorf("%+v", r)
		}
		return nil
	}))
	if err != nil || held == nil || n != 7 {
		t.Fatalf("%d rows, %v", n, err)
	}
	done()
}
