package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/result"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// runsResults returns some results of each sort.
func runsResults() []outcome.Result {
	return []outcome.Result{
		{Line: 2, ID: "a", Answer: "x", Usage: sdk.Usage{InputTokens: 4, CachedTokens: 1, OutputTokens: 3}}, {Line: 3, ID: "b", Answer: "y", Verdict: result.Verdict{Flagged: true}}, {Line: 5, ID: "c", Verdict: result.Verdict{Reason: "no answer fits"}}, {Line: 6, ID: "d", Answer: "z"},
		{Line: 7, ID: "e", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("the model is away")}},
	}
}

func TestRunsAreKeptApart(t *testing.T) {
	state := t.TempDir()
	kept := journal.RunsOf(state)
	m := journal.Manifest{File: "/p.hcl", Pipeline: "p"}
	j := journalBegin(t, state, m)
	if _, err := kept.Resume(j.ID(), journal.Options{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a run at work was opened: %v", err)
	}
	if _, ok := kept.Newest("/p.hcl", "p"); ok {
		t.Error("a run at work is offered")
	}
	const other, none = "another process is at work on run run-000001", "no run"
	nothing := func(file, pipeline, want string) {
		t.Helper()
		if err := kept.NothingLeft(file, pipeline); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	nothing("/p.hcl", "p", other)
	nothing("", "", other)
	nothing("/p.hcl", "q", none)
	must.Do(t, j.Close(journal.NewTotals(outcome.Totals{Items: 1}, errors.New("interrupted"))))
	if got, ok := kept.Newest("/p.hcl", "p"); !ok || got.ID != j.ID() {
		t.Errorf("newest %v, %v", got.ID, ok)
	}
	if _, ok := kept.Newest("/p.hcl", "q"); ok {
		t.Error("a run of another pipeline is offered")
	}
	if end := kept.End(j.ID()); end == nil || end.Complete || end.Reason != "interrupted" || end.Items != 1 {
		t.Errorf("end %+v", end)
	}
	j = journalResume(t, state, j.ID())
	if kept.End(j.ID()) != nil {
		t.Error("a run that is resumed has ended")
	}
	must.Do(t, j.Close(journal.NewTotals(outcome.Totals{Items: 2}, nil)))
	if _, ok := kept.Newest("/p.hcl", "p"); ok {
		t.Error("a finished run is offered")
	}
	must.Do(t, os.Mkdir(filepath.Join(state, "runs", "run-000002"), 0o700)) // by a process that was killed at once
	nothing("/p.hcl", "p", none)
	nothing("", "", none)
	for _, id := range []string{"../x", "", "20260101-000000-00000g", "run-", "run-1x"} {
		if _, err := kept.Resume(id, journal.Options{}); err == nil {
			t.Errorf("run %q was opened", id)
		}
	}
}

// folders returns the names of the remaining runs.
func folders(t *testing.T, state string) (names []string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(state, "runs"))
	must.Do(t, err)
	for _, d := range left {
		if d.IsDir() {
			names = append(names, d.Name())
		}
	}
	return names
}
