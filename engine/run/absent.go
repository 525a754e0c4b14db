package run

import (
	"context"
	"maps"
)

// Absent returns those of the ids that no knowledge of the run has an entry of.
func (r *Run) Absent(ctx context.Context, ids map[string]bool) (map[string]bool, error) {
	absent := maps.Clone(ids)
	for _, k := range r.knowledge {
		if len(absent) == 0 {
			break
		}
		if err := k.IDs(ctx, func(id string) { delete(absent, id) }); err != nil {
			return nil, err
		}
	}
	return absent, nil
}
