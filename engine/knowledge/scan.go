package knowledge

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
)

const scanPage = 4096 // entries per page of a scan

// scan calls f with every entry that s asks for.
func scan(ctx context.Context, store Store, collection string, s sdk.Scan, f func(sdk.Entry)) error {
	s.Limit = scanPage
	for {
		page, err := store.Scan(ctx, collection, s)
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for _, e := range page.Entries {
			f(e)
		}
		if page.Next == "" {
			return nil
		}
		s.After = page.Next
	}
}

// Entries calls f with every entry, in no particular order: with its id alone, or
// with its text and metadata too.
func (k *Knowledge) Entries(ctx context.Context, texts bool, f func(sdk.Entry)) error {
	return scan(ctx, k.store, k.main, sdk.Scan{Texts: texts}, f)
}
