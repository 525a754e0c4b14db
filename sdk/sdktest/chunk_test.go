package sdktest

import (
	"context"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// chunker is a chunker made from a function over a text.
type chunker func(text string) []sdk.Chunk

func (c chunker) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		out[i] = c(d.Text)
	}
	return out, ctx.Err() // results that nobody waits for are not sent, either
}

func chunkStage(c chunker) sdk.Stage {
	return sdk.ChunkStage("cut", "Cuts.", func(context.Context, sdk.Setup, none) (sdk.Chunker, error) { return c, nil })
}

// paragraphs cuts at empty lines, and gives each chunk the first line.
func paragraphs(text string) []sdk.Chunk {
	var out []sdk.Chunk
	at := 0
	for part := range strings.SplitAfterSeq(text, "\n\n") {
		if strings.TrimSpace(part) != "" {
			out = append(out, sdk.Chunk{Start: at, End: at + len(part), Meta: sdk.Meta{"headings": "x"}})
		}
		at += len(part)
	}
	return out
}

func TestChunkers(t *testing.T) {
	Stage(t, chunkStage(paragraphs), "{}")
	for name, c := range map[string]struct {
		c    chunker
		want string
	}{
		"a part left out": {func(text string) []sdk.Chunk {
			all := paragraphs(text)
			return all[:min(len(all), 1)]
		}, "in no chunk"},
		"chunks of white space": {func(text string) []sdk.Chunk {
			return []sdk.Chunk{{End: len(text)}}[:min(len(text), 1)]
		}, "white space has 1 chunks"},
		"half a character": {func(text string) []sdk.Chunk {
			if len(text) < 2 || strings.TrimSpace(text) == "" {
				return paragraphs(text)
			}
			return []sdk.Chunk{{End: 1}, {Start: 1, End: len(text)}}
		}, "cut a character in two"},
		"out of order": {func(text string) []sdk.Chunk {
			all := paragraphs(text)
			if len(all) > 1 {
				all[0], all[1] = all[1], all[0]
			}
			return all
		}, "which are left for it"},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, chunkStage(c.c), "chunks give the document back", c.want) })
	}
}
