package chunk

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file cuts prose into chunks of whole sentences.
//
// A chunk takes up to `sentences` sentences and at most `size` tokens. A single sentence that is longer is cut as by
// the chunker recursive. The last `overlap` sentences of a chunk are repeated in the next one, as far as they leave
// room for a new one. Package syntax finds the sentences; it knows abbreviations, decimals, quotes, lists, and the
// marks of Chinese, Japanese and Hindi. An empty line ends a sentence, but not a chunk.
//
// Without overlap the chunks joined are the document: white space between two chunks belongs to the first.

type sentencesConfig struct {
	SizeConfig
	Sentences int `config:"sentences" default:"5" min:"0" doc:"Most sentences of a chunk; 0: as many as size allows."`
	Overlap   int `config:"overlap" default:"1" min:"0" doc:"Sentences that a chunk repeats of the one before it."`
}

// Sentences describes the chunker.
func Sentences() sdk.Stage {
	return sdk.ChunkStage("sentences", "Cuts prose into chunks of whole sentences.", openSentences, sdk.Revision(revision), sdk.PreferBatch(16), sdk.Validates(sentencesConfig.check))
}

func openSentences(_ context.Context, _ sdk.Setup, c sentencesConfig) (sdk.Chunker, error) {
	return c.Chunker(func(_ *sdk.Document, x *SpanText) []sdk.Chunk { return chunks(c.spans(x)) })
}

// check reports the errors that tags cannot find.
func (c sentencesConfig) check() error {
	if c.Sentences > 0 && c.Overlap >= c.Sentences {
		return &sdk.ArgumentError{Argument: "overlap", Err: fmt.Errorf("it must be from 0 to %d, less than sentences", c.Sentences-1)}
	}
	return nil
}

// split finds the sentences of a text, and cuts sentences that are too long.
func (c sentencesConfig) split(x *SpanText) []Span {
	var all []Span
	whole := splitter{Size: c.Size, Breaks: prose()}
	start := len(x.String) - len(strings.TrimLeftFunc(x.String, unicode.IsSpace))
	for start < len(x.String) {
		end := syntax.NextSentence(x.String, start, len(x.String))
		if end < 0 {
			end = len(x.String)
		}
		if x.blank(start, end) {
			all[len(all)-1].End = end
		} else {
			all = append(all, whole.split(x, start, end)...)
		}
		start = end
	}
	all[0].Start = 0 // includes the white space before the first sentence
	return all
}

// spans joins sentences into chunks.
func (c sentencesConfig) spans(x *SpanText) []Span {
	var out []Span
	all := c.split(x)
	for first, done := 0, 0; done < len(all); {
		end := done + 1 // every chunk has a new sentence
		for first < done && x.Tokens(all[first].Start, all[end-1].End) > c.Size {
			first++
		}
		for end < len(all) && (c.Sentences == 0 || end-first < c.Sentences) && x.Tokens(all[first].Start, all[end].End) <= c.Size {
			end++
		}
		out = append(out, Span{Start: all[first].Start, End: all[end-1].End})
		first, done = max(first+1, end-c.Overlap), end
	}
	return out
}
