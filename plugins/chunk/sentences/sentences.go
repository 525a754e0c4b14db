package sentences

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/racflow/racflow/plugins/internal/sentence"
	"github.com/racflow/racflow/plugins/internal/tokenspan"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	tokenspan.Config
	Sentences int `config:"sentences" default:"5" min:"0" doc:"Most sentences of a chunk; 0: as many as size allows."`
	Overlap   int `config:"overlap" default:"1" min:"0" doc:"Sentences that a chunk repeats of the one before it."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("sentences", "Cuts prose into chunks of whole sentences.", open, sdk.Revision(tokenspan.Revision), sdk.PreferBatch(16), sdk.Validates(config.check))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	return c.Chunker(func(_ *sdk.Document, x *tokenspan.Text) []sdk.Chunk { return tokenspan.Chunks(c.spans(x)) })
}

// check reports the errors that tags cannot find.
func (c config) check() error {
	if c.Sentences > 0 && c.Overlap >= c.Sentences {
		return &sdk.ArgumentError{Argument: "overlap", Err: fmt.Errorf("it must be from 0 to %d, less than sentences", c.Sentences-1)}
	}
	return nil
}

// split finds the sentences of a text, and cuts those that are too long.
func (c config) split(x *tokenspan.Text) []tokenspan.Span {
	var all []tokenspan.Span
	whole := tokenspan.Splitter{Size: c.Size, Breaks: tokenspan.Prose()}
	start := len(x.String) - len(strings.TrimLeftFunc(x.String, unicode.IsSpace))
	for start < len(x.String) {
		end := sentence.Next(x.String, start, len(x.String))
		if end < 0 {
			end = len(x.String)
		}
		if x.Blank(start, end) {
			all[len(all)-1].End = end
		} else {
			all = append(all, whole.Split(x, start, end)...)
		}
		start = end
	}
	all[0].Start = 0 // with the white space before it
	return all
}

// spans joins sentences to chunks.
func (c config) spans(x *tokenspan.Text) []tokenspan.Span {
	var out []tokenspan.Span
	all := c.split(x)
	for first, done := 0, 0; done < len(all); {
		end := done + 1 // a new sentence is in every chunk
		for first < done && x.Tokens(all[first].Start, all[end-1].End) > c.Size {
			first++
		}
		for end < len(all) && (c.Sentences == 0 || end-first < c.Sentences) && x.Tokens(all[first].Start, all[end].End) <= c.Size {
			end++
		}
		out = append(out, tokenspan.Span{Start: all[first].Start, End: all[end-1].End})
		first, done = max(first+1, end-c.Overlap), end
	}
	return out
}
