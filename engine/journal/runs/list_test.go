package runs_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// TestNumbers begins and removes runs while the clock stands and is set back, beside runs
// of an older racflow: no number comes twice, and the newest is the last that began.
func TestNumbers(t *testing.T) {
	state := t.TempDir()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.UTC)
	at := noon
	kept := runs.Of(state).At(func() time.Time { return at })
	for _, old := range []string{"20260301-120000-ffffff", "29991231-235959-000000"} {
		must.Do(t, os.MkdirAll(filepath.Join(state, "runs", old), 0o700))
	}
	beginAt := func(when time.Time, want string) {
		t.Helper()
		at = when
		j, _, err := kept.Begin(manifest.Manifest{File: "/p.hcl", Pipeline: "p"}, journal.Options{}, runs.Retention{})
		must.Do(t, err)
		must.Do(t, j.Close(nil))
		if started := j.Manifest.Started; !started.Equal(when.Truncate(time.Millisecond)) {
			t.Errorf("run %s says that it began at %v, and not at %v", j.ID(), started, when)
		}
		newest, ok := kept.Newest("/p.hcl", "p")
		last, any := kept.Last()
		if j.ID() != want || !ok || !any || newest.ID != want || last != want || !runs.IsID(want) {
			t.Errorf("begun: %s, newest: %s, last: %s, want %s", j.ID(), newest.ID, last, want)
		}
	}
	remove := func(id string) {
		t.Helper()
		must.Do(t, kept.Remove(id))
	}
	beginAt(noon, "run-000001")
	beginAt(noon, "run-000002")
	beginAt(noon.Add(-24*time.Hour), "run-000003")
	remove("run-000003")
	beginAt(noon.Add(-2000*time.Hour), "run-000004")
	remove("run-000001")
	remove("run-000004")
	remove("run-000002")
	beginAt(noon, "run-000005")
	must.Do(t, os.RemoveAll(filepath.Join(state, "runs", "run-000005"))) // by hand
	beginAt(noon, "run-000006")
	must.Do(t, os.Mkdir(filepath.Join(state, "runs", "run-1000000"), 0o700))
	beginAt(noon, "run-1000001")
	beginAt(noon, "run-1000002")
	want := []string{"20260301-120000-ffffff", "29991231-235959-000000", "run-000006", "run-1000000", "run-1000001", "run-1000002"}
	var got []string
	for _, r := range kept.List() {
		got = append(got, r.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("oldest first (-want +got):\n%s", d)
	}
	if marks, _ := filepath.Glob(filepath.Join(state, "runs", "last-*")); len(marks) != 2 {
		t.Errorf("markers: %q", marks)
	}
}

// TestAtOnce begins and removes runs in the same moment.
func TestAtOnce(t *testing.T) {
	state := t.TempDir()
	kept := runs.Of(state)
	var mu sync.Mutex
	given := map[string]int{}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 8 {
				j, _, err := kept.Begin(manifest.Manifest{}, journal.Options{}, runs.Retention{})
				if err == nil {
					err = j.Close(nil)
				}
				if err == nil && worker%2 == 0 {
					err = kept.Remove(j.ID())
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				given[j.ID()]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, times := range given {
		if times != 1 {
			t.Errorf("%s was given %d times", id, times)
		}
	}
	if len(given) != 64 || len(folders(t, state)) != 32 {
		t.Errorf("%d names, %d folders", len(given), len(folders(t, state)))
	}
}

func TestListAndRemove(t *testing.T) {
	state := t.TempDir()
	kept := runs.Of(state)
	m := manifest.Manifest{File: "/p.hcl", Pipeline: "p", Input: manifest.File{Path: "/in.tsv"}}
	var want []runs.Info
	ends := []struct {
		end            *journal.Totals
		state          runs.State
		answers, items int
		tokens         uint64
	}{
		{nil, runs.Unfinished, 3, 0, 7},
		{journal.NewTotals(outcome.Totals{Items: 2}, errors.New("interrupted")), runs.Unfinished, 4, 0, 7}, // the journal knows more than was written
		{journal.NewTotals(outcome.Totals{Items: 5, Failed: 1, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 4}}, nil), runs.FailedItems, 4, 5, 9},
		{journal.NewTotals(outcome.Totals{Items: 4, Left: 2}, nil), runs.Unfinished, 4, 6, 0},
		{journal.NewTotals(outcome.Totals{Items: 4}, nil), runs.Complete, 4, 4, 0},
	}
	for _, e := range ends {
		j := begin(t, state, m)
		must.Do(t, errors.Join(j.Keep(results()[:e.answers]), j.Close(e.end)))
		want = append(want, runs.Info{ID: j.ID(), Manifest: j.Manifest, Answered: e.answers, State: e.state, End: e.end, Items: e.items, Tokens: e.tokens})
	}
	busy := begin(t, state, m)
	want = append(want, runs.Info{ID: busy.ID(), Manifest: busy.Manifest, State: runs.AtWork})
	dead := "run-000099"
	must.Do(t, os.Mkdir(filepath.Join(state, "runs", dead), 0o700)) // killed as it began
	want = append(want, runs.Info{ID: dead, State: runs.Unfinished})
	list := kept.List()
	for i := range list {
		if small := list[i].Bytes < 100; small != (list[i].ID == dead) {
			t.Errorf("%+v", list[i])
		}
		list[i].Bytes = 0
	}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	if err := kept.Remove(busy.ID()); !errors.Is(err, support.ErrBusy) {
		t.Errorf("a run at work is removed: %v", err)
	}
	must.Do(t, busy.Close(nil))
	for _, id := range folders(t, state) {
		if err := kept.Remove(id); err != nil {
			t.Error(err)
		}
		if err := kept.Remove(id); err == nil {
			t.Errorf("run %s is removed twice", id)
		}
	}
	for _, id := range []string{"", ".", "../runs", "99999999-999999-ffffff", "run-12", "last-000099"} {
		if err := kept.Remove(id); err == nil {
			t.Errorf("%q is removed", id)
		}
	}
	if left := folders(t, state); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}
