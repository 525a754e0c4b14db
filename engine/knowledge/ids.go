package knowledge

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// IDs calls f with the id of every entry, in no particular order.
func (k *Knowledge) IDs(ctx context.Context, f func(id string)) error {
	return scan(ctx, k.store, k.main, sdk.Scan{}, func(e sdk.Entry) { f(e.ID) })
}
