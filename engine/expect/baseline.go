package expect

import (
	"fmt"
	"maps"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
)

// maxLost is how many items that were lost are named.
const maxLost = 20

// compare compares the answers with those of the baseline, item by item. Of items with the same
// id the first is matched with the first, where both have as many: else nobody knows which is which.
func (m *measurement) compare() error {
	b := &Baseline{Run: m.baseline.ID()}
	if m.baseline.Manifest.Answers != manifest.Labels {
		return fmt.Errorf("run %s did not answer with labels, so it cannot be a baseline: ndcg and recall_at measure passages", b.Run)
	}
	before, seen := map[string]journal.Item{}, map[string]int{}
	nth := func(r outcome.Result) string {
		seen[r.ID]++
		return fmt.Sprintf("%d %s", seen[r.ID], r.ID)
	}
	for item := range m.baseline.Kept() {
		before[nth(item.Result)] = item
	}
	had := maps.Clone(seen)
	clear(seen)
	has := map[string]int{}
	for _, now := range m.results {
		has[now.ID]++
	}
	for _, now := range m.results {
		key := nth(now)
		if !eval.Scored(now) {
			continue
		}
		old, ok := before[key]
		switch {
		case !ok || had[now.ID] != has[now.ID] || old.Status != journal.Answered && old.Status != journal.Failed || old.Result.Decided != nil:
			b.Missing++
			continue
		case old.Row.Label != "" && old.Row.Label != now.Expected:
			b.Relabelled++
			continue
		}
		was := old.Result
		was.Expected = now.Expected
		if old.Status == journal.Failed && was.Failure == nil {
			was.Failure = &outcome.Failure{}
		}
		wasRight, isRight := m.counter.Right(was), m.counter.Right(now)
		b.Paired.Add(wasRight, isRight)
		if wasRight && !isRight && len(b.Lost) < maxLost {
			b.Lost = append(b.Lost, now.ID)
		}
	}
	if b.Paired.Items == 0 {
		return fmt.Errorf("run %s has none of the %d items of %s with the same label: name a run over the same rows", b.Run, len(m.results), m.path)
	}
	b.Worse = b.Paired.Lost > b.Paired.Gained && b.Paired.Chance() < Chance
	m.compared = b
	return nil
}
