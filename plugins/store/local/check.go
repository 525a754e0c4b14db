package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxFaults bounds what Check tells of one segment.
const maxFaults = 8

// Check reads all of a collection and compares it with itself: every checksum,
// and every index with the rows. The error tells what is wrong, several things
// if there are; it is fs.ErrNotExist if there is no such collection. It takes
// about as long as building the indexes anew.
func Check(ctx context.Context, at Location) error {
	c, err := existing(at)
	if err != nil {
		return err
	}
	return c.read(func(s *snapshot) error {
		var all []error
		last := int64(-1)
		for i := range s.parts {
			if err := ctx.Err(); err != nil {
				return err
			}
			k := &checker{snapshot: s, part: &s.parts[i], at: i}
			k.checksums()
			if len(k.faults) == 0 { // otherwise all else follows from that
				k.rows(&last)
				k.lists(&k.part.terms.lists, "words")
				k.lists(&k.part.values, "values")
			}
			for _, fault := range k.faults {
				all = append(all, fmt.Errorf("%s: %w", k.where(), fault))
			}
		}
		if len(all) > 0 {
			all = append(all, errors.New("restore the collection from a copy, or delete its folder and build the knowledge again"))
		}
		return errors.Join(all...)
	})
}

// checker compares one part of a collection with itself.
type checker struct {
	*snapshot
	part   *part
	at     int
	faults []error
	words  []string
	gone   []uint32
	found  struct{ words, values int } // that the rows have
}

func (k *checker) where() string {
	if k.part.path == "" {
		return "the rows in the log"
	}
	return k.part.path
}

func (k *checker) fault(format string, values ...any) {
	if len(k.faults) < maxFaults {
		k.faults = append(k.faults, fmt.Errorf(format, values...))
	}
}

func (k *checker) checksums() {
	for s := section(0); s < sections; s++ {
		if err := k.part.verify(s, k.part.path, k.part.release); err != nil {
			k.faults = append(k.faults, err)
		}
	}
}

// rows compares every row with the indexes.
func (k *checker) rows(last *int64) {
	p := k.part
	k.gone = make([]uint32, p.terms.len())
	start, total, living := uint64(0), uint64(0), int64(0)
	for r := range int32(p.segment.rows) {
		rec, row := &p.records[r], p.row(r)
		if rec.start != start || row.id == "" || int(rec.label) >= len(p.labels.ends) {
			k.fault("row %d is not where it should be", r)
		}
		start += uint64(len(row.id) + len(row.hash) + len(row.context) + len(row.text) + len(row.meta))
		if int64(rec.sequence) <= *last {
			k.fault("row %d is out of order", r)
		}
		*last = int64(rec.sequence)
		if p.segment.find(hash(row.id), row.id) != r {
			k.fault("the directory does not lead to entry %q", row.id)
		}
		if !p.dead.has(r) {
			k.alone(row.id)
		}
		k.vector(r)
		if p.lexical {
			k.rowWords(r, row)
			total += uint64(p.lengths[r])
			if !p.dead.has(r) {
				living += int64(p.lengths[r])
			}
		}
		eachValue(nil, row.label, row.meta, func(key []byte) {
			k.found.values++
			n := p.values.search(string(key))
			if n == p.values.len() || p.values.key(n) != string(key) || !k.listed(&p.values, n, uint32(r)) {
				k.fault("the index of labels and metadata lacks a value of entry %q", row.id)
			}
		})
	}
	if start != uint64(len(p.heap)) {
		k.fault("there are %d bytes of strings, not %d", len(p.heap), start)
	}
	if total != p.image.words || living != p.words {
		k.fault("the numbers of words are wrong")
	}
	if p.gone != nil && !slices.Equal(p.gone, k.gone) {
		k.fault("the words of removed rows are wrong")
	}
	if k.found.words != len(p.terms.rows) || k.found.values != len(p.values.rows) {
		k.fault("the indexes have rows that they should not have")
	}
}

// alone wants no other part to have a living row with the id.
func (k *checker) alone(id string) {
	h := hash(id)
	for i := range k.parts {
		if i != k.at && k.parts[i].find(h, id) >= 0 {
			k.fault("entry %q is there twice", id)
		}
	}
}

// vector wants norm 1 or 0 and the coarse vector as near as its grid says.
func (k *checker) vector(r int32) {
	if k.part.dimension == 0 {
		return
	}
	x := k.part.vector(r)
	code, g := k.part.coarse(r)
	var square, off float64
	for i, v := range x {
		square += float64(v) * float64(v)
		d := float64(v) - float64(g.scale)*float64(code[i])
		off += d * d
	}
	if square != 0 && !(math.Abs(square-1) < 2*normTolerance) || !(math.Sqrt(off) <= float64(g.lost)+arithmetic(len(x))) {
		k.fault("the vector of row %d is wrong", r)
	}
}

func (k *checker) rowWords(r int32, row row) {
	p := k.part
	k.words = appendWords(k.words[:0], *k.analyzer, row.context, row.text)
	if p.lengths[r] != float32(len(k.words)) {
		k.fault("entry %q has %d words, not %v", row.id, len(k.words), p.lengths[r])
	}
	slices.Sort(k.words)
	for i := 0; i < len(k.words); {
		w, n := k.words[i], 1
		for i+n < len(k.words) && k.words[i+n] == w {
			n++
		}
		i += n
		k.found.words++
		term := p.terms.find(hash(w), w)
		if term < 0 || !k.counted(int(term), uint32(r), n) {
			k.fault("the index of words lacks %q of entry %q", w, row.id)
			continue
		}
		if p.dead.has(r) {
			k.gone[term]++
		}
	}
}

func (k *checker) listed(l *lists, key int, row uint32) bool {
	from, to := l.extent(key, key+1)
	_, ok := slices.BinarySearch(l.rows[from:to], row)
	return ok
}

func (k *checker) counted(term int, row uint32, count int) bool {
	t := &k.part.terms
	from, to := t.extent(term, term+1)
	at, ok := slices.BinarySearch(t.rows[from:to], row)
	return ok && t.count(from+at) == uint32(count)
}

// lists wants keys and rows to rise.
func (k *checker) lists(l *lists, what string) {
	end := 0
	for i := range l.len() {
		from, to := l.extent(i, i+1)
		if from != end || from == to || i > 0 && l.key(i-1) >= l.key(i) {
			k.fault("the index of %s is out of order", what)
		}
		end = to
		rows := l.rows[from:to]
		for j := 1; j < len(rows); j++ {
			if rows[j-1] >= rows[j] {
				k.fault("the index of %s has rows out of order", what)
			}
		}
	}
}
