package code

import (
	"context"
	"fmt"
	"strings"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/plugins/internal/tokenspan"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Size      int    `config:"size" default:"200" min:"1" doc:"Most tokens of a chunk."`
	Language  string `config:"language" doc:"The language of all documents, such as go, java, c, cpp, csharp, javascript, typescript, rust, kotlin, swift, scala, php, python, yaml, ruby or shell; without it the end of a document's path says it."`
	Tokenizer string `config:"tokenizer" default:"words" one_of:"words,characters,minilm" doc:"What size counts: words (and parts of 6 letters of longer ones), characters, or the WordPiece tokens of minilm."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("code", "Cuts source code by its declarations, in languages with braces or indentation.", open, sdk.Revision(tokenspan.Revision), sdk.PreferBatch(16), sdk.Validates(config.check))
}

// check reports what tags cannot say.
func (c config) check() error {
	if c.Language != "" && syntax.Named(c.Language) == nil {
		return &sdk.ArgumentError{Argument: "language", Err: fmt.Errorf("%q is not one of %s", c.Language, strings.Join(syntax.Names(), ", "))}
	}
	return nil
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	tokenizer, err := tokenspan.Named(c.Tokenizer)
	if err != nil {
		return nil, err
	}
	return tokenspan.Chunker(func(d sdk.Document) []sdk.Chunk {
		x := tokenizer.Read(d.Text)
		if x.Blank(0, len(d.Text)) {
			return nil
		}
		l := syntax.Named(c.Language)
		if l == nil {
			l = syntax.Of(&d)
		}
		if l == nil {
			var out []sdk.Chunk
			for _, s := range (tokenspan.Splitter{Size: c.Size, Breaks: tokenspan.Prose()}).Split(x, 0, len(d.Text)) {
				out = append(out, sdk.Chunk{Start: s.Start, End: s.End})
			}
			return out
		}
		f := file{File: l.Read(d.Text), text: x, size: c.Size}
		f.cut(f.Units(), 0, nil, true)
		return f.chunks()
	}), nil
}
