package cut

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Chunker cuts documents one by one.
type Chunker func(sdk.Document) []sdk.Chunk

// rules is the version of what decides where the stages of plugins/chunk cut:
// raise it whenever one of them may cut the same document elsewhere.
const rules = "2"

// Fingerprint implements sdk.Fingerprinter: knowledge that was cut by other rules
// is built anew.
func (Chunker) Fingerprint() string { return rules }

// Chunk cuts all documents.
func (c Chunker) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = c(d)
	}
	return out, nil
}
