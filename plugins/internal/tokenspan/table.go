package tokenspan

import (
	"sort"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/section"
)

// Table is a table of Markdown: its header from Start up to Rows, then its rows up to End.
type Table struct{ Start, Rows, End int }

// TableOf returns the table that a block is.
func TableOf(b section.Block) []Table {
	if b.Rows == 0 || b.Rows >= b.End {
		return nil
	}
	return []Table{{b.Start, b.Rows, b.End}}
}

// Tables returns the tables of a text.
func Tables(text string) (all []Table) {
	if !strings.Contains(text, "|") {
		return nil
	}
	for _, s := range section.Read(text) {
		for _, b := range s.Blocks {
			all = append(all, TableOf(b)...)
		}
	}
	return all
}

// Chunks splits a part of a text, and repeats the header of a table in each chunk that begins
// in its rows.
func (s Splitter) Chunks(x *Text, start, end int) []sdk.Chunk {
	out := Chunks(s.Split(x, start, end))
	for i := range out {
		out[i].Header = s.header(x, out[i].Start)
	}
	return out
}

// header is that of the table in whose rows a byte is. One that would take more than half of a
// chunk is not repeated.
func (s Splitter) header(x *Text, at int) sdk.Span {
	i := sort.Search(len(s.Tables), func(i int) bool { return s.Tables[i].End > at })
	if i == len(s.Tables) || at < s.Tables[i].Rows || !s.repeats(x, s.Tables[i]) {
		return sdk.Span{}
	}
	return sdk.Span{Start: s.Tables[i].Start, End: s.Tables[i].Rows}
}

func (s Splitter) repeats(x *Text, t Table) bool { return x.Tokens(t.Start, t.Rows) <= s.Size/2 }

// beforeHeader is the place before a header that a span from start to stop would end in, or
// with, else stop: a header stays with the first of its rows.
func (s Splitter) beforeHeader(x *Text, start, done, stop int) int {
	i := sort.Search(len(s.Tables), func(i int) bool { return s.Tables[i].Rows >= stop })
	if i == len(s.Tables) {
		return stop
	}
	if t := s.Tables[i]; t.Start < stop && t.Start > done && x.Tokens(start, t.Start) > 0 && s.repeats(x, t) {
		return t.Start
	}
	return stop
}
