package chunk

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file counts the tokens of texts, and cuts texts into spans of a limited number of tokens, for the chunkers.
//
// A document is tokenized once, into the list of positions where tokens begin. So two searches count the tokens of
// any part. A token that a cut divides belongs to the part in which it begins.
//
// Without overlap, the spans of a document follow each other without a gap: white space between them belongs to the
// first one. Joined they are the document, byte for byte.
//
// Tokenizers:
//
//   - words needs nothing and counts the same on every machine. A run of letters and digits is one token for every 6
//     characters or part of them. Every other character that is not white space is a token. So is each Chinese, Japanese or
//     Korean character;
//   - characters counts the characters that are not white space;
//   - minilm is the WordPiece tokenizer of that embedder, whose model must be on the machine. Of words above 100
//     characters, which the embedder does not read, every 100 characters count as a word.
//
// The chunkers decide which parts a document has. This file knows only Markdown's tables, in order to repeat the
// header if a table is cut.

// Span is the part of a text from byte Start up to End.
type Span struct{ Start, End int }

// Break is a kind of position where a text may be cut.
type Break struct {
	// last returns the last such position p with low < p <= high, or -1.
	last  func(text string, low, high int) int
	first func(text string, low, high int) int // returns the first one; nil: use last
	fine  bool                                 // used only if there is no other break
}

// firstIn returns the first break p with low < p <= high, or -1.
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

// The kinds of breaks, the strongest first: after an empty line, a line, a sentence, white space.
var (
	paragraphs     = Break{last: lastParagraph}
	lines          = Break{last: func(text string, low, high int) int { return lastLiteral(text, "\n", low, high) }}
	sentenceBreaks = Break{last: lastSentence, first: syntax.NextSentence}
	Words          = Break{last: lastWord, fine: true}
)

// breakAt returns a break after a separator, such as a line of dashes.
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

// lastParagraph returns the position after the last line of only white space.
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

// revision is the revision of the chunkers that read no Markdown. Raise it whenever one of them may cut the same
// document at other places, and raise the revision of recursive and of the other chunkers in plugins/internal/chunk
// as well.
const revision = "2"

// Chunker returns a chunker that cuts documents one by one. A document of only white space has no chunks.
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

// chunks returns a chunk for each span.
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
	Overlap int     // tokens of the previous span that a span repeats; at most half of Size
	Breaks  []Break // where to cut, the strongest first
	Tables  []table // of the text, in order; spans that begin in the rows of a table leave room for its header
}

// prose returns the breaks for texts without other structure.
func prose() []Break { return []Break{paragraphs, lines, sentenceBreaks, Words} }

// split returns the spans of the text from start up to end. A span ends at the last break of the strongest kind that
// leaves it at least half full. If there is none, it ends at the last break of any kind but words, else between
// words. It ends inside a word only if the word is larger than a span.
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

// stop returns where a span from start with at most size tokens ends: after done, and at end at the latest.
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

// overlap returns the start of the span after one that ends at stop. It is the first break in the text that may be
// repeated; breaks between words count only if there is no other.
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
