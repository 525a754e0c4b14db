package knowledge

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Random draws different entries for each item id. The same id and seed get the
// same draw as long as the knowledge is the same. others: an item that is an entry
// itself does not get that one.
func (k *Knowledge) Random(ctx context.Context, ids []string, draw sdk.Draw, others bool) ([][]sdk.Candidate, error) {
	all, err := k.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("random examples: %w", err)
	}
	draws := make([][]sdk.Candidate, len(ids))
	for i, id := range ids {
		h := fnv.New64a()
		if !draw.Shared {
			h.Write([]byte(id))
		}
		rng := rand.New(rand.NewPCG(draw.Seed, h.Sum64()))
		drawn := map[int]bool{}
		count := min(draw.Count, len(all))
		if others {
			if own := slices.IndexFunc(all, func(c sdk.Candidate) bool { return c.ID == id }); own >= 0 {
				drawn[own] = true
				count = min(draw.Count+1, len(all))
			}
		}
		for len(drawn) < count {
			if at := rng.IntN(len(all)); !drawn[at] {
				drawn[at] = true
				draws[i] = append(draws[i], all[at])
			}
		}
	}
	return draws, nil
}
