package recursive

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/tokenspan"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	tokenspan.Config
	Overlap    int      `config:"overlap" default:"0" min:"0" doc:"Tokens that a chunk repeats of the one before it, at most half of size."`
	Separators []string `config:"separators" default:"paragraphs,lines,sentences,words" pattern:"(?s)." doc:"Where to cut, strongest first: paragraphs, lines, sentences, words, or a text behind which to cut."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("recursive", "Cuts any text at paragraphs, else at lines, sentences, words.", open, sdk.Revision("3"), sdk.PreferBatch(16), sdk.Validates(config.check))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	split := tokenspan.Splitter{Size: c.Size, Overlap: c.Overlap, Breaks: breaksOf(c.Separators)}
	return c.Chunker(func(d *sdk.Document, x *tokenspan.Text) []sdk.Chunk {
		split := split
		if d.Meta["format"] != "code" {
			split.Tables = tokenspan.Tables(d.Text)
		}
		return split.Chunks(x, 0, len(d.Text))
	})
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	if c.Overlap > c.Size/2 {
		return &sdk.ArgumentError{Argument: "overlap", Err: fmt.Errorf("it must be from 0 to %d, half of size", c.Size/2)}
	}
	return nil
}

func breaksOf(separators []string) []tokenspan.Break {
	named := map[string]tokenspan.Break{"paragraphs": tokenspan.Paragraphs, "lines": tokenspan.Lines, "sentences": tokenspan.Sentences, "words": tokenspan.Words}
	var all []tokenspan.Break
	for _, s := range separators {
		b, ok := named[s]
		if !ok {
			b = tokenspan.Literal(s)
		}
		all = append(all, b)
	}
	return all
}
