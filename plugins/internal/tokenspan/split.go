package tokenspan

import "github.com/racflow/racflow/sdk"

// Span is the part of a text from byte Start up to End.
type Span struct{ Start, End int }

// Splitter cuts parts of a text that are too long.
type Splitter struct {
	Size    int     // most tokens of a span
	Overlap int     // tokens that a span repeats of the one before it; at most half of Size
	Breaks  []Break // where to cut, strongest first
	Tables  []Table // of the text, in its order; the spans that begin in the rows of one have room for its header
}

// Prose are the breaks of texts without other structure.
func Prose() []Break { return []Break{Paragraphs, Lines, Sentences, Words} }

// Split returns the spans of the text from start up to end. A span ends at the last
// break of the strongest kind that leaves it at least half full; where there is none,
// at the last break of any kind but words, else between words, and inside a word only
// if that is larger than a span.
func (s Splitter) Split(x *Text, start, end int) []Span {
	var spans []Span
	if x.Blank(start, end) {
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
func (s Splitter) stop(x *Text, start, done, size, end int) int {
	limit := x.Forward(start, size, end)
	if limit == end {
		return end
	}
	limit = s.beforeHeader(x, start, done, limit)
	half := max(done, x.Forward(start, size/2, end))
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
func (s Splitter) overlap(x *Text, start, stop int) int {
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
