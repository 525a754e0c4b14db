package report

import (
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/progress"
)

func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		step  progress.Step // state after a time, with steady progress from 0
		takes time.Duration
		want  string
	}{
		"items of a file": {progress.Step{Doing: "answering", Unit: "item", Done: 1200, Total: 10_003, About: true, Flagged: 12, Failed: 1, Paid: 0.4213}, 10 * time.Second,
			"answering: 1200 of about 10003 items, about 1 min 20 s left, 12 flagged, 1 failed, cost so far 0.4213 of about 3.51, 120/s"},
		"all of it":       {progress.Step{Doing: "answering", Unit: "item", Done: 1200, Total: 1200}, 10 * time.Second, "answering: 1200 of 1200 items, 120/s"},
		"too early":       {progress.Step{Doing: "answering", Unit: "item", Done: 1, Total: 3}, time.Second, "answering: 1 of 3 items"},
		"standard input":  {progress.Step{Doing: "answering", Unit: "item", Done: 1}, 100 * time.Second, "answering: 1 item, 1 per minute"},
		"slow":            {progress.Step{Doing: "answering", Unit: "item", Done: 10, Total: 1000}, 100 * time.Second, "answering: 10 of 1000 items, about 2 h 50 min left, 6 per minute"},
		"documents":       {progress.Step{Doing: "embedding", Name: "docs", Unit: progress.BytesUnit, Done: 1_234_567, Total: 40_000_000, Passages: 312}, 10 * time.Second, "embedding docs: 1.2 of 40.0 MB, about 5 min 20 s left, 312 passages, 123.5 kB/s"},
		"small documents": {progress.Step{Doing: "embedding", Name: "docs", Unit: progress.BytesUnit, Done: 10, Total: 999, Passages: 1}, time.Second, "embedding docs: 10 of 999 B, 1 passage"},
		"a stage learns":  {progress.Step{Doing: "learning", Name: "sample.linear", Unit: "row", Done: 16384}, time.Second, "learning sample.linear: 16384 rows"},
		"elections":       {progress.Step{Doing: "searching for weights, elections held", Done: 20}, 10 * time.Second, "searching for weights, elections held: 20, 2/s"},
	} {
		t.Run(name, func(t *testing.T) {
			var m progress.Meter
			start := time.Unix(0, 0)
			for i := range int64(11) {
				one := test.step
				one.Done, one.Paid = one.Done*i/10, one.Paid*float64(i)/10
				m.Add(start.Add(test.takes/10*time.Duration(i)), one)
			}
			if got := strings.Join(Progress(test.step, &m, start.Add(test.takes)), ", "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
