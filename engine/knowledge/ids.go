package knowledge

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Entries calls f with every entry, in no particular order: with its id alone, or
// with its text and metadata too.
func (k *Knowledge) Entries(ctx context.Context, texts bool, f func(sdk.Entry)) error {
	return scan(ctx, k.store, k.main, sdk.Scan{Texts: texts}, f)
}
