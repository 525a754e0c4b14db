package chunk

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// table is a Markdown table: its header from Start up to Rows, then its rows up to End.
type table struct{ Start, Rows, End int }

// tableOf returns a block as a table; nil: the block is none.
func tableOf(b support.Block) []table {
	if b.Rows == 0 || b.Rows >= b.End {
		return nil
	}
	return []table{{b.Start, b.Rows, b.End}}
}

// tables returns the tables of a text.
func tables(text string) (all []table) {
	if !strings.Contains(text, "|") {
		return nil
	}
	for _, s := range support.ReadSections(text) {
		for _, b := range s.Blocks {
			all = append(all, tableOf(b)...)
		}
	}
	return all
}

// chunks splits a part of a text, and repeats the header of a table in each chunk that begins in the table's rows.
func (s splitter) chunks(x *SpanText, start, end int) []sdk.Chunk {
	out := chunks(s.split(x, start, end))
	for i := range out {
		out[i].Header = s.header(x, out[i].Start)
	}
	return out
}

// header returns the header of the table whose rows contain a byte. It returns none if the header would take more
// than half of a chunk.
func (s splitter) header(x *SpanText, at int) sdk.Span {
	i := sort.Search(len(s.Tables), func(i int) bool { return s.Tables[i].End > at })
	if i == len(s.Tables) || at < s.Tables[i].Rows || !s.repeats(x, s.Tables[i]) {
		return sdk.Span{}
	}
	return sdk.Span{Start: s.Tables[i].Start, End: s.Tables[i].Rows}
}

func (s splitter) repeats(x *SpanText, t table) bool { return x.Tokens(t.Start, t.Rows) <= s.Size/2 }

// beforeHeader returns the position before a header if a span from start to stop would end in or with the header,
// else stop: a header stays with its first row.
func (s splitter) beforeHeader(x *SpanText, start, done, stop int) int {
	i := sort.Search(len(s.Tables), func(i int) bool { return s.Tables[i].Rows >= stop })
	if i == len(s.Tables) {
		return stop
	}
	if t := s.Tables[i]; t.Start < stop && t.Start > done && x.Tokens(start, t.Start) > 0 && s.repeats(x, t) {
		return t.Start
	}
	return stop
}

// wordPart is the number of letters and digits that count as one token.
const wordPart = 6

// Tokenizer finds the positions where the tokens of a text begin. It is safe for concurrent use.
type Tokenizer struct {
	begin func(text string, at func(int))
}

// Named returns a tokenizer by its name: words, characters or minilm. Its error is an sdk.ArgumentError for
// tokenizer.
func Named(name string) (*Tokenizer, error) {
	switch name {
	case "words":
		return &Tokenizer{words}, nil
	case "characters":
		return &Tokenizer{characters}, nil
	case "minilm":
		t, err := minilm()
		if err != nil {
			return nil, &sdk.ArgumentError{Argument: "tokenizer", Err: err}
		}
		return &Tokenizer{t.Each}, nil
	}
	return nil, &sdk.ArgumentError{Argument: "tokenizer", Err: fmt.Errorf("%q is not one of words, characters, minilm", name)}
}

func minilm() (*tokenizer.Tokenizer, error) {
	dir, err := sdk.ModelDir("minilm")
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the model's vocabulary is not on this machine (%s): racflow model pull minilm brings it; words needs no model", dir)
	}
	return t, err
}

func characters(text string, at func(int)) {
	for i, r := range text {
		if !unicode.IsSpace(r) {
			at(i)
		}
	}
}

func words(text string, at func(int)) {
	length := 0 // of the current run
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			switch {
			case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
				if length%wordPart == 0 {
					at(i)
				}
				length++
			default:
				if c > ' ' || !unicode.IsSpace(rune(c)) {
					at(i)
				}
				length = 0
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			at(i)
			length = 0
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if length%wordPart == 0 {
				at(i)
			}
			length++
		case unicode.IsMark(r): // part of the previous letter
			if length == 0 {
				at(i)
				length = 1
			}
		default:
			if !unicode.IsSpace(r) {
				at(i)
			}
			length = 0
		}
		i += n
	}
}

// SpanText is a document with its tokens counted.
type SpanText struct {
	String string
	begins []int // byte positions of the tokens, in rising order
}

// Read counts the tokens of a text. Tokens that begin at the same byte count once.
func (t *Tokenizer) Read(text string) *SpanText {
	x := &SpanText{String: text}
	t.begin(text, func(i int) {
		if n := len(x.begins); n == 0 || x.begins[n-1] < i {
			x.begins = append(x.begins, i)
		}
	})
	return x
}

// upTo returns the number of tokens that begin before byte i.
func (x *SpanText) upTo(i int) int { return sort.SearchInts(x.begins, i) }

// Tokens returns the number of tokens that begin in the bytes from start up to end.
func (x *SpanText) Tokens(start, end int) int { return x.upTo(end) - x.upTo(start) }

// token returns the byte where a token begins, given its number, or the text's length if there are fewer tokens.
func (x *SpanText) token(number int) int {
	if number >= len(x.begins) {
		return len(x.String)
	}
	return x.begins[number]
}

// inside reports whether i is inside a character.
func (x *SpanText) inside(i int) bool { return i < len(x.String) && !utf8.RuneStart(x.String[i]) }

// forward returns the end of the longest part from start with at most n tokens. The part ends at limit at the latest,
// and contains at least one character with tokens; n is 1 or more.
func (x *SpanText) forward(start, n, limit int) int {
	begins := x.token(x.upTo(start) + n)
	i := begins
	for x.inside(i) {
		i--
	}
	if x.Tokens(start, i) == 0 {
		for i = begins; x.inside(i); {
			i++
		}
	}
	return min(i, limit)
}

// back returns where the last n tokens before end begin.
func (x *SpanText) back(end, n int) int {
	i := x.token(max(0, x.upTo(end)-n))
	for x.inside(i) {
		i++
	}
	return i
}

// blank reports whether there is only white space from start up to end.
func (x *SpanText) blank(start, end int) bool { return strings.TrimSpace(x.String[start:end]) == "" }
