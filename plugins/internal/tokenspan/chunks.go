package tokenspan

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of chunkers.
type Config struct {
	Size      int    `config:"size" default:"200" min:"1" doc:"Most tokens of a chunk."`
	Tokenizer string `config:"tokenizer" default:"words" one_of:"words,characters,minilm" doc:"What size counts: words (and parts of 6 letters of longer ones), characters, or the WordPiece tokens of minilm."`
}

// Revision of the chunkers that read no Markdown: raise it whenever one of them may cut
// the same document elsewhere, and those of plugins/chunk/markdown and recursive as well.
const Revision = "2"

// Chunker returns a chunker that cuts documents one by one. One of white space alone has
// no chunks.
func (c Config) Chunker(cut func(*sdk.Document, *Text) []sdk.Chunk) (sdk.Chunker, error) {
	tokenizer, err := Named(c.Tokenizer)
	return &chunker{tokenizer, cut}, err
}

type chunker struct {
	tokenizer *Tokenizer
	cut       func(*sdk.Document, *Text) []sdk.Chunk
}

// Chunk implements sdk.Chunker.
func (c *chunker) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i := range documents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if x := c.tokenizer.Read(documents[i].Text); !x.Blank(0, len(x.String)) {
			out[i] = c.cut(&documents[i], x)
		}
	}
	return out, nil
}

// Chunks makes a chunk of each span.
func Chunks(spans []Span) []sdk.Chunk {
	out := make([]sdk.Chunk, len(spans))
	for i, s := range spans {
		out[i] = sdk.Chunk{Start: s.Start, End: s.End}
	}
	return out
}
