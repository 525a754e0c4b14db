package cut

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
)

// Limits checks the arguments tokenizer, size and overlap that chunkers have.
func Limits(tokenizer string, size, overlap int) (*Tokenizer, error) {
	t, err := Named(tokenizer)
	faults := []error{err}
	if size < 1 {
		faults = append(faults, &sdk.ArgumentError{Argument: "size", Err: fmt.Errorf("%d tokens: a chunk has at least 1", size)})
	} else if overlap < 0 || overlap > size/2 {
		faults = append(faults, &sdk.ArgumentError{Argument: "overlap", Err: fmt.Errorf("it must be from 0 to %d, half of size", size/2)})
	}
	return t, errors.Join(faults...)
}

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
