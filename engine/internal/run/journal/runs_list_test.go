package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// TestNumbers begins and removes runs while the clock stands and is set back: no number is used twice, and the newest
// run is the last that began.
func TestNumbers(t *testing.T) {
	state := t.TempDir()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.UTC)
	at := noon
	kept := journal.RunsOf(state).At(func() time.Time { return at })
	beginAt := func(when time.Time, want string) {
		t.Helper()
		at = when
		j, _, err := kept.Begin(journal.Manifest{File: "/p.hcl", Pipeline: "p"}, journal.Options{}, journal.Retention{})
		must.Do(t, err)
		must.Do(t, j.Close(nil))
		if started := j.Manifest.Started; !started.Equal(when.Truncate(time.Millisecond)) {
			t.Errorf("run %s says that it began at %v, and not at %v", j.ID(), started, when)
		}
		newest, ok := kept.Newest("/p.hcl", "p")
		last, any := kept.Last()
		must.Equal(t, "IDs of the run begun, the newest and the last", [3]string{want, want, want}, [3]string{j.ID(), newest.ID, last})
		must.Equal(t, "there is a newest and a last, and the ID is one of a run", [3]bool{true, true, true}, [3]bool{ok, any, journal.IsRunID(want)})
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
	want := []string{"run-000006", "run-1000000", "run-1000001", "run-1000002"}
	var got []string
	for _, r := range kept.List() {
		got = append(got, r.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("oldest first (-want +got):\n%s", d)
	}
}

// TestAtOnce begins and removes runs at the same moment.
func TestAtOnce(t *testing.T) {
	state := t.TempDir()
	kept := journal.RunsOf(state)
	var mu sync.Mutex
	given := map[string]int{}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 8 {
				j, _, err := kept.Begin(journal.Manifest{}, journal.Options{}, journal.Retention{})
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
	kept := journal.RunsOf(state)
	m := journal.Manifest{File: "/p.hcl", Pipeline: "p", Input: journal.SeenFile{Path: "/in.tsv"}}
	var want []journal.RunInfo
	ends := []struct {
		end            *journal.Totals
		state          journal.RunState
		answers, items int
		tokens         uint64
	}{
		{nil, journal.Unfinished, 3, 0, 7},
		{journal.NewTotals(outcome.Totals{Items: 2}, errors.New("interrupted")), journal.Unfinished, 4, 0, 7}, // the journal knows more than the totals
		{journal.NewTotals(outcome.Totals{Items: 5, Failed: 1, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 4}}, nil), journal.FailedItems, 4, 5, 9},
		{journal.NewTotals(outcome.Totals{Items: 4, Left: 2}, nil), journal.Unfinished, 4, 6, 0},
		{journal.NewTotals(outcome.Totals{Items: 4}, nil), journal.Complete, 4, 4, 0},
	}
	for _, e := range ends {
		j := journalBegin(t, state, m)
		must.Do(t, errors.Join(j.Keep(runsResults()[:e.answers]), j.Close(e.end)))
		want = append(want, journal.RunInfo{ID: j.ID(), Manifest: j.Manifest, Answered: e.answers, State: e.state, End: e.end, Items: e.items, Tokens: e.tokens})
	}
	busy := journalBegin(t, state, m)
	want = append(want, journal.RunInfo{ID: busy.ID(), Manifest: busy.Manifest, State: journal.AtWork})
	dead := "run-000099"
	must.Do(t, os.Mkdir(filepath.Join(state, "runs", dead), 0o700)) // killed at its beginning
	want = append(want, journal.RunInfo{ID: dead, State: journal.Unfinished})
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
	for _, id := range []string{"", ".", ".", "run-12", "last"} {
		if err := kept.Remove(id); err == nil {
			t.Errorf("%q is removed", id)
		}
	}
	if left := folders(t, state); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// TestOwingRunsStay ends runs in each way, and begins many after them: of the finished runs, the
// newest 20 stay, and removed runs are reported.
func TestOwingRunsStay(t *testing.T) {
	state := t.TempDir()
	busy := journalBegin(t, state, journal.Manifest{})
	defer busy.Close(nil)
	want := []string{busy.ID()}
	paid := sdk.Usage{InputTokens: 100_000, OutputTokens: 234}
	for _, end := range []*journal.Totals{
		nil, // killed
		journal.NewTotals(outcome.Totals{Items: 1152}, errors.New("interrupted")),
		journal.NewTotals(outcome.Totals{Items: 5, Provisional: 1}, nil),
		journal.NewTotals(outcome.Totals{Items: 5, Left: 1}, nil),
		journal.NewTotals(outcome.Totals{Items: 5, Failed: 3, FailedPaid: 1, Usage: paid}, nil),
	} {
		j := journalBegin(t, state, journal.Manifest{})
		must.Do(t, j.Close(end))
		want = append(want, j.ID())
	}
	damaged := journalBegin(t, state, journal.Manifest{})
	must.Do(t, damaged.Close(journal.NewTotals(outcome.Totals{}, nil)))
	must.Do(t, os.WriteFile(filepath.Join(damaged.Folder(), "manifest.json"), []byte("{}\n"), 0o600))
	if n := journal.RunsOf(state).Unfinished(); n != len(want) {
		t.Errorf("%d unfinished runs are counted, want %d", n, len(want))
	}
	want = append(want, damaged.ID())
	var removed, all []string
	for i := range 25 {
		totals := outcome.Totals{Items: 2, Failed: i % 2}
		if i == 2 {
			totals.Usage = paid
		}
		j, gone, err := journal.RunsOf(state).Begin(journal.Manifest{}, journal.Options{}, journal.Retention{})
		if err == nil {
			err = j.Close(journal.NewTotals(totals, nil))
		}
		must.Do(t, err)
		removed = append(removed, gone...)
		all = append(all, j.ID())
	}
	if d := cmp.Diff(append(want, all[4:]...), folders(t, state)); d != "" { // 20, and the run that began after the last pruning
		t.Errorf("runs that are left (-want +got):\n%s", d)
	}
	if d := cmp.Diff(all[:4], removed); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
}

// TestRetention ends runs at given times, in this order, and begins another run.
func TestRetention(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	tests := map[string]struct {
		ago  []time.Duration // when finished runs began
		size int             // extra size of each run
		keep journal.Retention
		left []int
	}{
		"by count":                    {ago: []time.Duration{0, 0, 0, 0}, keep: journal.Retention{Runs: 2}, left: []int{3, 4}},
		"one is too few to keep none": {ago: []time.Duration{90 * day}, keep: journal.Retention{Age: day}, left: []int{1}},
		"by age":                      {ago: []time.Duration{9 * day, 8 * day, 2 * day, day}, keep: journal.Retention{Age: 7 * day}, left: []int{3, 4}},
		"all are old":                 {ago: []time.Duration{9 * day, 8 * day}, keep: journal.Retention{Age: day}, left: []int{2}},
		"a clock that was set back":   {ago: []time.Duration{9 * day, 2 * day, 900 * day, day}, keep: journal.Retention{Age: 7 * day}, left: []int{2, 3, 4}},
		"a clock that was ahead":      {ago: []time.Duration{9 * day, -900 * day, 8 * day, 8 * day}, keep: journal.Retention{Age: 7 * day}, left: []int{2, 3, 4}},
		"set back, by count":          {ago: []time.Duration{0, 0, 900 * day}, keep: journal.Retention{Runs: 1}, left: []int{3}},
		"by size":                     {ago: []time.Duration{0, 0, 0}, size: 5000, keep: journal.Retention{Bytes: 13_000}, left: []int{2, 3}},
		"a size below that of any":    {ago: []time.Duration{0, 0, 0}, size: 5000, keep: journal.Retention{Bytes: 1}, left: []int{3}},
		"room for all":                {ago: []time.Duration{3 * day, 2 * day}, size: 5000, keep: journal.Retention{Runs: 9, Age: 9 * day, Bytes: 1e6}, left: []int{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, at := t.TempDir(), now
			kept := journal.RunsOf(state).At(func() time.Time { return at })
			all := journal.Retention{Runs: 100}
			for _, ago := range test.ago {
				at = now.Add(-ago)
				j, _, err := kept.Begin(journal.Manifest{}, journal.Options{}, all)
				if err == nil {
					err = os.WriteFile(filepath.Join(j.Folder(), "beside"), make([]byte, test.size), 0o600)
				}
				if err == nil {
					err = j.Close(journal.NewTotals(outcome.Totals{}, nil))
				}
				must.Do(t, err)
			}
			at = now
			j, removed, err := kept.Begin(journal.Manifest{}, journal.Options{}, test.keep)
			must.Do(t, err)
			defer j.Close(nil)
			var want []string
			for _, n := range test.left {
				want = append(want, fmt.Sprintf("run-%06d", n))
			}
			if d := cmp.Diff(append(want, j.ID()), folders(t, state)); d != "" || len(removed) != len(test.ago)-len(test.left) {
				t.Errorf("removed %v, left (-want +got):\n%s", removed, d)
			}
		})
	}
}
