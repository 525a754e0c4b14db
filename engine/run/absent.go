package run

import (
	"context"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Absent returns those of the passages that no knowledge of the run has an entry of. Of a collection that
// somebody else makes only entries that are named by their ids are known to be absent.
func (r *Run) Absent(ctx context.Context, passages []source.Gold) ([]source.Gold, error) {
	absent := make([]bool, len(passages))
	ids, quotes := map[string][]int{}, []int{}
	for i, g := range passages {
		if absent[i] = true; g.Quote != "" {
			quotes = append(quotes, i)
			continue
		}
		for _, id := range g.IDs {
			ids[id] = append(ids[id], i)
		}
	}
	for _, k := range r.graph.Knowledge() {
		if !slices.Contains(absent, true) {
			break
		}
		if k.Attached() { // what is outside of its sample is not read
			for _, i := range quotes {
				absent[i] = false
			}
			entries, err := k.Get(ctx, slices.Sorted(maps.Keys(ids)))
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				for _, i := range ids[e.ID] {
					absent[i] = false
				}
			}
			continue
		}
		if err := k.Entries(ctx, sdk.Scan{Texts: len(quotes) > 0}, func(e sdk.Entry) {
			for _, i := range ids[e.ID] {
				absent[i] = false
			}
			for _, i := range quotes {
				absent[i] = absent[i] && !passages[i].Is(e.ID, e.Meta, e.Text)
			}
		}); err != nil {
			return nil, err
		}
	}
	var all []source.Gold
	for i, g := range passages {
		if absent[i] {
			all = append(all, g)
		}
	}
	return all, nil
}
