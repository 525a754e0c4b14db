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
	tokenspan.Config
	Language string `config:"language" doc:"The language of all documents, such as go, java, c, cpp, csharp, javascript, typescript, rust, kotlin, swift, scala, php, python, yaml, ruby or shell; by default the end of a document's path decides."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("code", "Cuts source code by its declarations, in languages with braces or indentation.", open, sdk.Revision(tokenspan.Revision), sdk.PreferBatch(16), sdk.Validates(config.check))
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	if c.Language != "" && syntax.Named(c.Language) == nil {
		return &sdk.ArgumentError{Argument: "language", Err: fmt.Errorf("%q is not one of %s", c.Language, strings.Join(syntax.Names(), ", "))}
	}
	return nil
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	return c.Chunker(func(d *sdk.Document, x *tokenspan.Text) []sdk.Chunk {
		l := syntax.Named(c.Language)
		if l == nil {
			l = syntax.Of(d)
		}
		if l == nil {
			return tokenspan.Chunks(tokenspan.Splitter{Size: c.Size, Breaks: tokenspan.Prose()}.Split(x, 0, len(d.Text)))
		}
		f := file{File: l.Read(d.Text), text: x, size: c.Size}
		f.cut(f.Units(), 0, nil, true)
		return f.chunks()
	})
}
