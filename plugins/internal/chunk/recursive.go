package chunk

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
)

// This file cuts any text into chunks of a given size, at the strongest
// separators there are: between paragraphs before between lines, sentences and
// words.
//
// A chunk takes as much as fits. It ends at the last break of the strongest kind
// that leaves it at least half full; where there is none, at the last break of any
// kind but words; between words where a sentence alone is too long; and inside a
// word only where that is. So small paragraphs are joined, and large ones cut
// into sentences. The result is that of splitting recursively and joining small
// pieces again, in one pass and in linear time.
//
// Without overlap the chunks joined are the document: white space between two
// recursiveChunks belongs to the first. An overlap repeats the end of a chunk in the next
// one, from its first break on, so that it may be shorter than asked for.
//
// A chunk that begins in the rows of a Markdown table repeats the header of the table
// (sdk.Chunk.Header), which counts towards its size, unless that is more than half of it.
//
// Apart from that it does not look at what a text means, nor at its format.

type recursiveConfig struct {
	SizeConfig
	Overlap    int      `config:"overlap" default:"0" min:"0" doc:"Tokens that a chunk repeats of the one before it, at most half of size."`
	Separators []string `config:"separators" default:"paragraphs,lines,sentences,words" pattern:"(?s)." doc:"Where to cut, strongest first: paragraphs, lines, sentences, words, or a text behind which to cut."`
}

// Recursive describes the chunker.
func Recursive() sdk.Stage {
	return sdk.ChunkStage("recursive", "Cuts any text at paragraphs, else at lines, sentences, words.", openRecursive, sdk.Revision("3"), sdk.PreferBatch(16), sdk.Validates(recursiveConfig.check))
}

func openRecursive(_ context.Context, _ sdk.Setup, c recursiveConfig) (sdk.Chunker, error) {
	split := splitter{Size: c.Size, Overlap: c.Overlap, Breaks: breaksOf(c.Separators)}
	return c.Chunker(func(d *sdk.Document, x *SpanText) []sdk.Chunk {
		split := split
		if d.Meta["format"] != "code" {
			split.Tables = tables(d.Text)
		}
		return split.chunks(x, 0, len(d.Text))
	})
}

// check reports the errors that tags cannot find.
func (c recursiveConfig) check() error {
	if c.Overlap > c.Size/2 {
		return &sdk.ArgumentError{Argument: "overlap", Err: fmt.Errorf("it must be from 0 to %d, half of size", c.Size/2)}
	}
	return nil
}

func breaksOf(separators []string) []Break {
	named := map[string]Break{"paragraphs": paragraphs, "lines": lines, "sentences": sentenceBreaks, "words": Words}
	var all []Break
	for _, s := range separators {
		b, ok := named[s]
		if !ok {
			b = breakAt(s)
		}
		all = append(all, b)
	}
	return all
}
