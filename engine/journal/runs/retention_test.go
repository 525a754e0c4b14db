package runs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestOwingRunsStay ends runs in each way, and begins many after them: of those
// that resuming would not add to, the newest 20 stay, and what is removed is said.
func TestOwingRunsStay(t *testing.T) {
	state := t.TempDir()
	busy := begin(t, state, manifest.Manifest{})
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
		j := begin(t, state, manifest.Manifest{})
		must.Do(t, j.Close(end))
		want = append(want, j.ID())
	}
	damaged := begin(t, state, manifest.Manifest{})
	must.Do(t, damaged.Close(journal.NewTotals(outcome.Totals{}, nil)))
	must.Do(t, os.WriteFile(filepath.Join(damaged.Folder(), "manifest.json"), []byte("{}\n"), 0o600))
	if n := runs.Of(state).Unfinished(); n != len(want) {
		t.Errorf("%d unfinished runs are counted, want %d", n, len(want))
	}
	want = append(want, damaged.ID())
	var removed []runs.Removed
	var all []string
	for i := range 25 {
		totals := outcome.Totals{Items: 2, Failed: i % 2}
		if i == 2 {
			totals.Usage = paid
		}
		j, gone, err := runs.Of(state).Begin(manifest.Manifest{}, journal.Options{}, runs.Retention{})
		if err == nil {
			err = j.Close(journal.NewTotals(totals, nil))
		}
		must.Do(t, err)
		removed = append(removed, gone...)
		all = append(all, j.ID())
	}
	if d := cmp.Diff(append(want, all[4:]...), folders(t, state)); d != "" { // 20, and the one that began after the last pruning
		t.Errorf("runs that are left (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]runs.Removed{{ID: all[0]}, {ID: all[1], Failed: 1}, {ID: all[2], Tokens: 100_234}, {ID: all[3], Failed: 1}}, removed); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
}

// TestRetention ends runs at given times, in this order, and begins one more.
func TestRetention(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	tests := map[string]struct {
		ago  []time.Duration // when finished runs began
		size int             // of what each keeps beside
		keep runs.Retention
		left []int
	}{
		"by count":                    {ago: []time.Duration{0, 0, 0, 0}, keep: runs.Retention{Runs: 2}, left: []int{3, 4}},
		"one is too few to keep none": {ago: []time.Duration{90 * day}, keep: runs.Retention{Age: day}, left: []int{1}},
		"by age":                      {ago: []time.Duration{9 * day, 8 * day, 2 * day, day}, keep: runs.Retention{Age: 7 * day}, left: []int{3, 4}},
		"all are old":                 {ago: []time.Duration{9 * day, 8 * day}, keep: runs.Retention{Age: day}, left: []int{2}},
		"a clock that was set back":   {ago: []time.Duration{9 * day, 2 * day, 900 * day, day}, keep: runs.Retention{Age: 7 * day}, left: []int{2, 3, 4}},
		"a clock that was ahead":      {ago: []time.Duration{9 * day, -900 * day, 8 * day, 8 * day}, keep: runs.Retention{Age: 7 * day}, left: []int{2, 3, 4}},
		"set back, by count":          {ago: []time.Duration{0, 0, 900 * day}, keep: runs.Retention{Runs: 1}, left: []int{3}},
		"by size":                     {ago: []time.Duration{0, 0, 0}, size: 5000, keep: runs.Retention{Bytes: 13_000}, left: []int{2, 3}},
		"a size below that of any":    {ago: []time.Duration{0, 0, 0}, size: 5000, keep: runs.Retention{Bytes: 1}, left: []int{3}},
		"room for all":                {ago: []time.Duration{3 * day, 2 * day}, size: 5000, keep: runs.Retention{Runs: 9, Age: 9 * day, Bytes: 1e6}, left: []int{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, at := t.TempDir(), now
			kept := runs.Of(state).At(func() time.Time { return at })
			all := runs.Retention{Runs: 100}
			for _, ago := range test.ago {
				at = now.Add(-ago)
				j, _, err := kept.Begin(manifest.Manifest{}, journal.Options{}, all)
				if err == nil {
					err = os.WriteFile(filepath.Join(j.Folder(), "beside"), make([]byte, test.size), 0o600)
				}
				if err == nil {
					err = j.Close(journal.NewTotals(outcome.Totals{}, nil))
				}
				must.Do(t, err)
			}
			at = now
			j, removed, err := kept.Begin(manifest.Manifest{}, journal.Options{}, test.keep)
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
