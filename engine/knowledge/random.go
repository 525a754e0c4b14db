package knowledge

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// examples are the labelled entries that random shots are drawn from.
type examples struct {
	once sync.Once
	err  error
	all  []sdk.Candidate
}

// Random draws different entries for each item id. The same id and seed get the
// same draw as long as the knowledge is the same.
func (k *Knowledge) Random(ctx context.Context, ids []string, draw sdk.Draw) ([][]sdk.Candidate, error) {
	k.random.once.Do(func() {
		k.random.err = scan(ctx, k.store, k.main, sdk.Scan{Texts: true}, func(e sdk.Entry) {
			k.random.all = append(k.random.all, sdk.Candidate{
				ID: e.ID, Text: e.Text, Label: e.Label, Context: e.Context, Meta: e.Meta,
				Dense: sdk.Unscored, Lexical: sdk.Unscored,
			})
		})
		// The store's order depends on how its content came about; ids do not.
		slices.SortFunc(k.random.all, func(a, b sdk.Candidate) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
	})
	if k.random.err != nil {
		return nil, fmt.Errorf("random examples: %w", k.random.err)
	}
	all := k.random.all
	draws := make([][]sdk.Candidate, len(ids))
	for i, id := range ids {
		h := fnv.New64a()
		if !draw.Shared {
			h.Write([]byte(id))
		}
		rng := rand.New(rand.NewPCG(draw.Seed, h.Sum64()))
		drawn := map[int]bool{}
		for len(drawn) < min(draw.Count, len(all)) {
			if at := rng.IntN(len(all)); !drawn[at] {
				drawn[at] = true
				draws[i] = append(draws[i], all[at])
			}
		}
	}
	return draws, nil
}
