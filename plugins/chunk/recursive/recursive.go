package recursive

import (
	"context"
	"errors"

	"github.com/racflow/racflow/plugins/internal/cut"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Size       int      `config:"size" default:"200" doc:"Most tokens of a chunk."`
	Overlap    int      `config:"overlap" default:"0" doc:"Tokens that a chunk repeats of the one before it, at most half of size."`
	Separators []string `config:"separators" default:"paragraphs,lines,sentences,words" doc:"Where to cut, strongest first: paragraphs, lines, sentences, words, or a text behind which to cut."`
	Tokenizer  string   `config:"tokenizer" default:"words" one_of:"words,characters,minilm" doc:"What size counts: words (and parts of 6 letters of longer ones), characters, or the WordPiece tokens of minilm."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("recursive", "Cuts any text at paragraphs, else at lines, sentences, words.", open, sdk.PreferBatch(16))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	tokenizer, err := cut.Limits(c.Tokenizer, c.Size, c.Overlap)
	breaks, err2 := breaksOf(c.Separators)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	split := cut.Splitter{Size: c.Size, Overlap: c.Overlap, Breaks: breaks}
	return cut.Chunker(func(d sdk.Document) []sdk.Chunk {
		var out []sdk.Chunk
		for _, s := range split.Split(tokenizer.Read(d.Text), 0, len(d.Text)) {
			out = append(out, sdk.Chunk{Start: s.Start, End: s.End})
		}
		return out
	}), nil
}

func breaksOf(separators []string) ([]cut.Break, error) {
	named := map[string]cut.Break{"paragraphs": cut.Paragraphs, "lines": cut.Lines, "sentences": cut.Sentences, "words": cut.Words}
	var all []cut.Break
	for _, s := range separators {
		b, ok := named[s]
		if !ok {
			b = cut.Literal(s)
		}
		if s == "" {
			return nil, &sdk.ArgumentError{Argument: "separators", Err: errors.New("a separator is empty; words are cut without one where they are too long")}
		}
		all = append(all, b)
	}
	return all, nil
}
