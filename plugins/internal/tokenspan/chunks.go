package tokenspan

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Chunker cuts documents one by one.
type Chunker func(sdk.Document) []sdk.Chunk

// Revision of the chunkers that read no Markdown: raise it whenever one of them may cut
// the same document elsewhere, and that of plugins/chunk/markdown as well.
const Revision = "2"

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
