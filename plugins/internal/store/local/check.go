package local

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/search"
	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file compares a collection with itself: every checksum, and every index with
// the rows. It repairs nothing.

// maxErrors bounds what Check reports of one segment.
const maxErrors = 8

// CheckParts compares the parts of a snapshot with themselves. The errors say what is
// wrong, and in which file.
func CheckParts(ctx context.Context, s *segment.Snapshot) (all []error) {
	last := int64(-1)
	for i := range s.Parts {
		if err := ctx.Err(); err != nil {
			return []error{err}
		}
		k := &checker{Snapshot: s, part: &s.Parts[i], at: i}
		k.checksums()
		if len(k.errs) == 0 { // otherwise all else follows from that
			k.rows(&last)
			k.lists(&k.part.Terms.Lists, "words")
			k.lists(&k.part.Values, "values")
		}
		for _, err := range k.errs {
			all = append(all, fmt.Errorf("%s: %w", k.where(), err))
		}
	}
	return all
}

// checker compares one part of a collection with itself.
type checker struct {
	*segment.Snapshot
	part  *segment.Part
	at    int
	errs  []error
	words []string
	gone  []uint32
	found struct{ words, values int } // that the rows have
}

func (k *checker) where() string {
	if k.part.Path == "" {
		return "the rows in the log"
	}
	return k.part.Path
}

func (k *checker) wrong(format string, values ...any) {
	if len(k.errs) < maxErrors {
		k.errs = append(k.errs, fmt.Errorf(format, values...))
	}
}

func (k *checker) checksums() {
	for s := range segment.SectionCount {
		if err := k.part.Verify(s); err != nil {
			k.errs = append(k.errs, err)
		}
	}
}

// rows compares every row with the indexes.
func (k *checker) rows(last *int64) {
	p := k.part
	k.gone = make([]uint32, p.Terms.Len())
	start, total, live := uint64(0), uint64(0), int64(0)
	for r := range int32(p.Segment.Rows) {
		rec, row := &p.Records[r], p.Row(r)
		if rec.Start != start || row.ID == "" || int(rec.Label) >= len(p.Labels.Ends) {
			k.wrong("row %d is not where it should be", r)
		}
		start += uint64(len(row.ID) + len(row.Hash) + len(row.Context) + len(row.Text) + len(row.Meta))
		if int64(rec.Sequence) <= *last {
			k.wrong("row %d is out of order", r)
		}
		*last = int64(rec.Sequence)
		if p.Segment.Find(segment.Hash(row.ID), row.ID) != r {
			k.wrong("the directory does not lead to entry %q", row.ID)
		}
		if !p.Dead.Has(r) {
			k.alone(row.ID)
		}
		k.vector(r)
		if p.Lexical {
			k.rowWords(r, row)
			total += uint64(p.Lengths[r])
			if !p.Dead.Has(r) {
				live += int64(p.Lengths[r])
			}
		}
		segment.EachValue(nil, row.Label, row.Meta, func(key []byte) {
			k.found.values++
			n := p.Values.Search(string(key))
			if n == p.Values.Len() || p.Values.Key(n) != string(key) || !k.listed(&p.Values, n, uint32(r)) {
				k.wrong("the index of labels and metadata lacks a value of entry %q", row.ID)
			}
		})
	}
	if start != uint64(len(p.Heap)) {
		k.wrong("there are %d bytes of strings, not %d", len(p.Heap), start)
	}
	if total != p.Image.Words || live != p.Words {
		k.wrong("the numbers of words are wrong")
	}
	if p.Gone != nil && !slices.Equal(p.Gone, k.gone) {
		k.wrong("the words of removed rows are wrong")
	}
	if k.found.words != len(p.Terms.Rows) || k.found.values != len(p.Values.Rows) {
		k.wrong("the indexes have rows that they should not have")
	}
}

// alone checks that no other part has a live row with the id.
func (k *checker) alone(id string) {
	h := segment.Hash(id)
	for i := range k.Parts {
		if i != k.at && k.Parts[i].Find(h, id) >= 0 {
			k.wrong("entry %q is there twice", id)
		}
	}
}

// vector checks that the norm is 1 or 0 and that the int8 codes are as near as they say.
func (k *checker) vector(r int32) {
	if k.part.Dimension == 0 {
		return
	}
	x := k.part.Vector(r)
	code, g := k.part.Code(r)
	var square, off float64
	for i, v := range x {
		square += float64(v) * float64(v)
		if code != nil {
			d := float64(v) - float64(g.Scale)*float64(code[i])
			off += d * d
		}
	}
	if square != 0 && !(math.Abs(square-1) < 2*segment.NormTolerance) || !(math.Sqrt(off) <= float64(g.Lost)+search.RoundingError(len(x))) {
		k.wrong("the vector of row %d is wrong", r)
	}
}

func (k *checker) rowWords(r int32, row segment.Row) {
	p := k.part
	k.words = segment.AppendWords(k.words[:0], *k.Analyzer, row.Context, row.Text)
	if p.Lengths[r] != float32(len(k.words)) {
		k.wrong("entry %q has %d words, not %v", row.ID, len(k.words), p.Lengths[r])
	}
	slices.Sort(k.words)
	for i := 0; i < len(k.words); {
		w, n := k.words[i], 1
		for i+n < len(k.words) && k.words[i+n] == w {
			n++
		}
		i += n
		k.found.words++
		term := p.Terms.Find(segment.Hash(w), w)
		if term < 0 || !k.counted(int(term), uint32(r), n) {
			k.wrong("the index of words lacks %q of entry %q", w, row.ID)
			continue
		}
		if p.Dead.Has(r) {
			k.gone[term]++
		}
	}
}

func (k *checker) listed(l *segment.Lists, key int, row uint32) bool {
	from, to := l.Extent(key, key+1)
	_, ok := slices.BinarySearch(l.Rows[from:to], row)
	return ok
}

func (k *checker) counted(term int, row uint32, count int) bool {
	t := &k.part.Terms
	from, to := t.Extent(term, term+1)
	at, ok := slices.BinarySearch(t.Rows[from:to], row)
	return ok && t.Count(from+at) == uint32(count)
}

// lists checks that keys and rows rise.
func (k *checker) lists(l *segment.Lists, what string) {
	end := 0
	for i := range l.Len() {
		from, to := l.Extent(i, i+1)
		if from != end || from == to || i > 0 && l.Key(i-1) >= l.Key(i) {
			k.wrong("the index of %s is out of order", what)
		}
		end = to
		rows := l.Rows[from:to]
		for j := 1; j < len(rows); j++ {
			if rows[j-1] >= rows[j] {
				k.wrong("the index of %s has rows out of order", what)
			}
		}
	}
}
