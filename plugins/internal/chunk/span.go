package chunk

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file counts the tokens of texts, and cuts texts into spans within a
// number of tokens, for the chunkers.
//
// A document is tokenized once, into the places where tokens begin, so that those of any
// part are counted by two searches. A token that a cut would divide belongs to the part
// in which it begins.
//
// The spans of a document, where they do not overlap, follow each other without
// a gap: white space between them belongs to the one before it. Joined they are
// the document, byte for byte.
//
// Tokenizers:
//
//   - words needs nothing and counts the same on every machine: a run of letters
//     and digits is a token for every 6 characters begun, every other character
//     that is not white space is one, and so is each Chinese, Japanese or Korean
//     character;
//   - characters counts the characters that are not white space;
//   - minilm is the WordPiece of that embedder, which must be on the machine.
//     Words above 100 characters, which the embedder does not read, count with
//     every 100 characters of them as a word.
//
// Of formats the package knows Markdown's tables alone, whose header is repeated where one is
// cut: the chunkers decide which parts a document has.

// Span is the part of a text from byte Start up to End.
type Span struct{ Start, End int }

// Break is a kind of position where a text may be cut.
type Break struct {
	// last is the last such position p with low < p <= high, or -1.
	last  func(text string, low, high int) int
	first func(text string, low, high int) int // the first of them; nil: last finds it
	fine  bool                                 // used only where there is no other
}

// firstIn is the first break p with low < p <= high, or -1.
func (b Break) firstIn(text string, low, high int) int {
	if b.first != nil {
		return b.first(text, low, high)
	}
	for found := -1; ; {
		p := b.last(text, low, high)
		if p < 0 {
			return found
		}
		found, high = p, p-1
	}
}

// The kinds of breaks, strongest first: behind an empty line, a line, a sentence,
// white space.
var (
	paragraphs     = Break{last: lastParagraph}
	lines          = Break{last: func(text string, low, high int) int { return lastLiteral(text, "\n", low, high) }}
	sentenceBreaks = Break{last: lastSentence, first: syntax.NextSentence}
	Words          = Break{last: lastWord, fine: true}
)

// breakAt is a break behind a text, such as a line of dashes.
func breakAt(separator string) Break {
	return Break{last: func(text string, low, high int) int { return lastLiteral(text, separator, low, high) }}
}

func lastLiteral(text, separator string, low, high int) int {
	from := max(0, low-len(separator)+1)
	i := strings.LastIndex(text[from:high], separator)
	if i < 0 || from+i+len(separator) <= low {
		return -1
	}
	return from + i + len(separator)
}

// lastParagraph is behind the last line of white space alone.
func lastParagraph(text string, low, high int) int {
	for p := high; p > low; {
		p = lastLiteral(text, "\n", low, p)
		if p < 0 {
			return -1
		}
		lineStart := strings.LastIndexByte(text[max(0, low-1):p-1], '\n')
		if lineStart >= 0 || low == 0 {
			if strings.TrimSpace(text[max(0, low-1)+lineStart+1:p]) == "" {
				return p
			}
		}
		p--
	}
	return -1
}

func lastSentence(text string, low, high int) int {
	found := -1
	for p := low; ; {
		if p = syntax.NextSentence(text, p, high); p < 0 {
			return found
		}
		if p > low {
			found = p
		}
	}
}

func lastWord(text string, low, high int) int {
	for p := high; p > low; {
		r, n := utf8.DecodeLastRuneInString(text[:p])
		if unicode.IsSpace(r) {
			return p
		}
		p -= n
	}
	return -1
}

// SizeConfig is embedded in the configs of chunkers.
type SizeConfig struct {
	Size      int    `config:"size" default:"200" min:"1" doc:"Most tokens of a chunk."`
	Tokenizer string `config:"tokenizer" default:"words" one_of:"words,characters,minilm" doc:"What size counts: words (and parts of 6 letters of longer ones), characters, or the WordPiece tokens of minilm."`
}

// revision of the chunkers that read no Markdown: raise it whenever one of them may cut
// the same document elsewhere, and those of plugins/internal/chunk and recursive as well.
const revision = "2"

// Chunker returns a chunker that cuts documents one by one. One of white space alone has
// no chunks.
func (c SizeConfig) Chunker(cut func(*sdk.Document, *SpanText) []sdk.Chunk) (sdk.Chunker, error) {
	tokenizer, err := Named(c.Tokenizer)
	return &chunker{tokenizer, cut}, err
}

type chunker struct {
	tokenizer *Tokenizer
	cut       func(*sdk.Document, *SpanText) []sdk.Chunk
}

// Chunk implements sdk.Chunker.
func (c *chunker) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i := range documents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if x := c.tokenizer.Read(documents[i].Text); !x.blank(0, len(x.String)) {
			out[i] = c.cut(&documents[i], x)
		}
	}
	return out, nil
}

// chunks makes a chunk of each span.
func chunks(spans []Span) []sdk.Chunk {
	out := make([]sdk.Chunk, len(spans))
	for i, s := range spans {
		out[i] = sdk.Chunk{Start: s.Start, End: s.End}
	}
	return out
}

// splitter cuts parts of a text that are too long.
type splitter struct {
	Size    int     // most tokens of a span
	Overlap int     // tokens that a span repeats of the one before it; at most half of Size
	Breaks  []Break // where to cut, strongest first
	Tables  []table // of the text, in its order; the spans that begin in the rows of one have room for its header
}

// prose are the breaks of texts without other structure.
func prose() []Break { return []Break{paragraphs, lines, sentenceBreaks, Words} }

// split returns the spans of the text from start up to end. A span ends at the last
// break of the strongest kind that leaves it at least half full; where there is none,
// at the last break of any kind but words, else between words, and inside a word only
// if that is larger than a span.
func (s splitter) split(x *SpanText, start, end int) []Span {
	var spans []Span
	if x.blank(start, end) {
		return nil
	}
	for done := start; ; {
		size := s.Size
		if h := s.header(x, start); h != (sdk.Span{}) {
			size -= x.Tokens(h.Start, h.End)
		}
		stop := s.stop(x, start, done, size, end)
		if x.Tokens(stop, end) == 0 { // the rest has no tokens
			stop = end
		}
		spans = append(spans, Span{start, stop})
		if stop == end {
			return spans
		}
		start, done = s.overlap(x, start, stop), stop
	}
}

// stop is where a span from start with at most size tokens ends: behind done, and at end
// at the latest.
func (s splitter) stop(x *SpanText, start, done, size, end int) int {
	limit := x.forward(start, size, end)
	if limit == end {
		return end
	}
	limit = s.beforeHeader(x, start, done, limit)
	half := max(done, x.forward(start, size/2, end))
	for _, low := range []int{half, done} {
		for _, b := range s.Breaks {
			if low == half && b.fine || low >= limit {
				continue
			}
			if p := b.last(x.String, low, limit); p >= 0 && x.Tokens(start, p) > 0 {
				return p
			}
		}
	}
	return limit
}

// overlap is where the span after one that ends at stop starts: at the first break in
// the text that it may repeat, between words only where there is no other.
func (s splitter) overlap(x *SpanText, start, stop int) int {
	if s.Overlap == 0 {
		return stop
	}
	low := x.back(stop, s.Overlap)
	if low <= start || low >= stop {
		return stop
	}
	best := -1
	for _, fine := range []bool{false, true} {
		for _, b := range s.Breaks {
			if b.fine != fine {
				continue
			}
			if p := b.firstIn(x.String, low-1, stop-1); p >= 0 && (best < 0 || p < best) {
				best = p
			}
		}
		if best > start {
			return best
		}
	}
	return low
}
