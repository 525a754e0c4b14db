package lexical

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
)

// Most long queries have words that nearly every text has. These take most of the
// time and add least to the scores. MaxScore leaves them out where they cannot
// matter: Turtle and Flood, "Query evaluation: strategies and optimizations"
// (Information Processing & Management, 1995). The highest share that each word can
// have in a score tells which words are essential: a row among the best has at least
// one of them. Only their lists are walked through, rarest word first; the other words
// are looked up for the rows that may still come among the best. The result is that of
// walking through all lists, to the bit: the shares are added in the same order.
//
// The floor, which rows among the best must reach, is known early: before a long list
// is walked through, the sums over the rarer words tell what the best rows reach at
// least.

// ceilings keeps the highest share that a word can have, without its idf, for
// the words of a part that were asked for. It depends on the average length, and so
// on the snapshot.
type ceilings struct {
	made  sync.Once
	words []atomic.Uint32 // by word: bits of a float32; 0: not known yet
}

const (
	// shortList is the length below which a ceiling is not worth knowing.
	shortList = 64
	// longList is the length of a list from which it is worth finding out first
	// whether it is essential.
	longList = 2048
	// lookUp is about how many postings can be walked through in the time of
	// looking one row up in a list.
	lookUp = 16
	// roundOff covers what float32 sums of shares may be off by.
	roundOff = 1 + 1e-4
)

// ceiling returns the highest share of a word's list.
func (l *lexical) ceiling(p *snapshot.Part, c *ceilings, list *postings) float32 {
	if len(list.rows) < shortList {
		return list.weight
	}
	c.made.Do(func() { c.words = make([]atomic.Uint32, p.Terms.Len()) })
	if bits := c.words[list.term].Load(); bits != 0 {
		return list.weight * math.Float32frombits(bits)
	}
	highest := float32(0)
	for i, r := range list.rows {
		if int(r) < len(p.Lengths) { // else damaged
			highest = max(highest, l.share(list.tf(i), p.Lengths[r]))
		}
	}
	c.words[list.term].Store(math.Float32bits(highest))
	return list.weight * highest
}

// bound sets what the words from each one on can add at most. It reports whether
// that is known: where there are few postings, or many other rows whose scores would
// have to be looked up, it is not worth knowing.
func (l *lexical) bound(p *snapshot.Part, c *ceilings, others int) bool {
	total := 0
	for i := range l.lists {
		total += len(l.lists[i].rows)
	}
	known := len(l.lists) > 1 && total > longList && total > lookUp*others*len(l.lists)
	l.rest = slices.Grow(l.rest[:0], len(l.lists)+1)[:len(l.lists)+1]
	l.rest[len(l.lists)] = 0
	for i := len(l.lists) - 1; i >= 0; i-- {
		list := &l.lists[i]
		if l.rest[i] = float32(math.Inf(1)); known {
			l.rest[i] = l.rest[i+1] + l.ceiling(p, c, list)*roundOff
			list.ranks = list.terms.Ranks(list.term, p.Segment.Rows)
		}
	}
	return known
}
