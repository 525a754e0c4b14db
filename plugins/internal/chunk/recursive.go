package chunk

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
)

// This file cuts any text into chunks of a given size, at the strongest separators: paragraphs before lines, then
// sentences, then words.
//
// A chunk takes as much as fits. It ends at the last break of the strongest kind that leaves the chunk at least half
// full. If there is none, it ends at the last break of any kind but words. It ends between words only if a single
// sentence is too long, and inside a word only if a single word is too long. So small paragraphs are joined, and
// large ones are cut into sentences. The result is the same as splitting recursively and joining small pieces, but
// takes one pass and linear time.
//
// Without overlap the chunks joined are the document: white space between two chunks belongs to the first. An overlap
// repeats the end of a chunk in the next one, from a break on, so it may be shorter than requested.
//
// A chunk that begins in the rows of a Markdown table repeats the header of the table (sdk.Chunk.Header). The header
// counts towards the chunk's size, and is not repeated if it takes more than half of the size.
//
// Otherwise the chunker ignores the meaning and the format of a text.

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
