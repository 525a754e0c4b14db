package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk/lock"
)

// TestClockSetBack begins runs while the clock stands, is set back, or is at the end
// of what a second's fraction can say.
func TestClockSetBack(t *testing.T) {
	state := t.TempDir()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.UTC)
	at := noon
	runs := journal.Of(state).At(func() time.Time { return at })
	var ids []string
	beginAt := func(when time.Time) {
		t.Helper()
		at = when
		j, err := runs.Begin(journal.Manifest{File: "/p.hcl", Pipeline: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(nil); err != nil {
			t.Fatal(err)
		}
		if started := j.Manifest.Started; !started.Equal(when.Truncate(time.Millisecond)) {
			t.Errorf("run %s says that it began at %v, and not at %v", j.ID(), started, when)
		}
		ids = append(ids, j.ID())
	}
	beginAt(noon)
	beginAt(noon)
	beginAt(noon.Add(-24 * time.Hour))
	beginAt(noon.Add(time.Hour))
	want := []string{"20260301-120000-ffffff", "20260301-120001-000000", "20260301-120001-000001", "20260301-130000-ffffff"}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	beginAt(noon.Add(-1000 * time.Hour))
	newest, ok := runs.Newest("/p.hcl", "p")
	if !ok || newest.ID != ids[len(ids)-1] || !journal.IsID(newest.ID) {
		t.Errorf("the newest of %q is %s", ids, newest.ID)
	}
}

// TestBeginAtOnce begins runs in the same moment, by a clock that stands.
func TestBeginAtOnce(t *testing.T) {
	state := t.TempDir()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	runs := journal.Of(state).At(func() time.Time { return at })
	var mu sync.Mutex
	var ids []string
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			j, err := runs.Begin(journal.Manifest{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, j.ID())
			if err := j.Close(nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != 16 || !slices.Equal(ids, folders(t, state)) {
		t.Errorf("%d names: %q", n, ids)
	}
}

func TestListAndRemove(t *testing.T) {
	state := t.TempDir()
	runs := journal.Of(state)
	m := journal.Manifest{File: "/p.hcl", Pipeline: "p", Input: journal.File{Path: "/in.tsv"}}
	var want []journal.Info
	ends := []struct {
		end   *journal.Totals
		state journal.State
		kept  int
	}{
		{nil, journal.Unfinished, 3},
		{journal.NewTotals(outcome.Totals{Items: 2}, errors.New("interrupted")), journal.Unfinished, 4}, // the journal knows more than was written
		{journal.NewTotals(outcome.Totals{Items: 5, Failed: 1}, nil), journal.FailedItems, 4},
		{journal.NewTotals(outcome.Totals{Items: 4}, nil), journal.Complete, 4},
	}
	for _, e := range ends {
		j := begin(t, state, m)
		if err := errors.Join(j.Keep(results()[:e.kept]), j.Close(e.end)); err != nil {
			t.Fatal(err)
		}
		want = append(want, journal.Info{ID: j.ID(), Manifest: j.Manifest, Answered: e.kept, State: e.state})
	}
	busy := begin(t, state, m)
	want = append(want, journal.Info{ID: busy.ID(), Manifest: busy.Manifest, State: journal.AtWork})
	dead := "29991231-235959-000000"
	if err := os.Mkdir(filepath.Join(state, "runs", dead), 0o700); err != nil { // killed as it began
		t.Fatal(err)
	}
	want = append(want, journal.Info{ID: dead, State: journal.Unfinished})
	if d := cmp.Diff(want, runs.List()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	if err := runs.Remove(busy.ID()); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("a run at work is removed: %v", err)
	}
	if err := busy.Close(nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range folders(t, state) {
		if err := runs.Remove(id); err != nil {
			t.Error(err)
		}
		if err := runs.Remove(id); err == nil {
			t.Errorf("run %s is removed twice", id)
		}
	}
	for _, id := range []string{"", ".", "../runs", "99999999-999999-ffffff"} {
		if err := runs.Remove(id); err == nil {
			t.Errorf("%q is removed", id)
		}
	}
	if left := folders(t, state); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}
