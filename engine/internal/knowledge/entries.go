package knowledge

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
)

// Extent returns how many entries there are and roughly how many tokens they have:
// the characters of their texts and contexts, divided by four, as in an estimate. The
// terms that were added for the search do not count, and neither does what a prompt
// writes around a passage. It walks through the store each time.
func (k *Knowledge) Extent(ctx context.Context) (e rule.Extent, err error) {
	characters := 0
	err = k.Entries(ctx, sdk.Scan{Texts: true}, func(entry sdk.Entry) {
		context, _ := sdk.SplitContext(entry.Context)
		e.Entries++
		characters += utf8.RuneCountInString(entry.Text) + utf8.RuneCountInString(context)
	})
	if err != nil {
		return rule.Extent{}, fmt.Errorf("count the tokens of knowledge %q: %w", k.block.Name, err)
	}
	e.Tokens = sdk.EstimateTokens(characters)
	return k.backing.Scale(e), nil
}

// all is entries in memory.
type all struct {
	once    sync.Once
	err     error
	entries []sdk.Candidate

	hash   sync.Once
	hashes []uint64 // of the entries' ids
}

// read reads entries once, in the order of All.
func (a *all) read(pages func() iter.Seq2[[]sdk.Entry, error]) ([]sdk.Candidate, error) {
	a.once.Do(func() {
		a.err = each(pages(), func(entry sdk.Entry) { a.entries = append(a.entries, candidate(entry)) })
		slices.SortFunc(a.entries, generation.InOrder)
	})
	return a.entries, a.err
}

// All returns every entry as a candidate that nothing has scored, in the order of
// the documents: by their ids, and within a document by place; rows by their ids.
// So it is the same for the same content, however that came about. It is read
// once, and all of it is held in memory: the caller must not change it.
func (k *Knowledge) All(ctx context.Context) ([]sdk.Candidate, error) {
	found, err := k.all.read(func() iter.Seq2[[]sdk.Entry, error] { return k.backing.Whole(ctx, sdk.Scan{Texts: true}) })
	if err != nil {
		return nil, fmt.Errorf("read all of knowledge %q: %w", k.block.Name, err)
	}
	return found, nil
}

// backing is what the entries of a knowledge are read from beside searches: a generation that
// racflow has built, or an attached collection with its sample.
type backing interface {
	// Pages yields entries, with those of their parts that are wanted: those that stages learn
	// from. An error is the last.
	Pages(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Whole is Pages for who needs every entry that there is, or an error that says why that
	// cannot be had.
	Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Scale is what an extent of the entries of Pages comes to for all that there are.
	Scale(e rule.Extent) rule.Extent
	// Nearest returns for each vector its nearest label centroids, at most n.
	Nearest(ctx context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error)
	// Hold and Leave are those of Knowledge.
	Hold(ctx context.Context, holder string) error
	Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error)
}

// built is a generation in a store.
type built struct {
	store      generation.Store
	collection string
	content    string
	schema     sdk.Schema
	// search is that of the knowledge, for the centroids.
	search func(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query, fresh int) ([][]sdk.Candidate, error)
}

func (b *built) Pages(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return generation.ScanPages(ctx, b.store, b.collection, want)
}

func (b *built) Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error] {
	return b.Pages(ctx, want)
}

func (b *built) Scale(e rule.Extent) rule.Extent { return e }

func (b *built) Nearest(ctx context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error) {
	queries := make([]sdk.Query, len(vectors))
	for i, v := range vectors {
		queries[i].Vector = v
	}
	return b.search(ctx, generation.Centroids(b.collection), nearest(n), queries, 0) // these rows were searched for before
}

func (b *built) Hold(ctx context.Context, holder string) error {
	return generation.Hold(ctx, b.store, b.collection, b.schema, b.content, holder)
}

func (b *built) Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error) {
	held, err := generation.Leave(ctx, b.store, b.collection, b.schema, b.content, holder)
	if err != nil || held || !drop {
		return false, err
	}
	return true, generation.Drop(ctx, b.store, b.collection)
}

// Random draws entries for each item, named by its id or, where it has none, its text, by
// rendezvous hashing (Thaler and Ravishankar,
// "Using name-based mappings to increase hit rates", IEEE/ACM Transactions on Networking
// 6(1), 1998): an entry's weight is a hash of the seed, the item and the entry's id, and
// the heaviest are drawn. So one that is added to the knowledge, changed or removed
// changes those draws alone that have it, or had it. The hash also assigns each entry to
// one part of the draw, which keeps the others as they are. Only where the knowledge has
// too few entries for a part does it get those that are left over from others.
//
// others: an item that is an entry itself does not get that one.
func (k *Knowledge) Random(ctx context.Context, ids []string, draw sdk.Draw, others bool) ([][]sdk.Candidate, error) {
	all, err := k.drawn.read(func() iter.Seq2[[]sdk.Entry, error] { return k.backing.Pages(ctx, sdk.Scan{Texts: true}) })
	if err != nil {
		return nil, fmt.Errorf("read knowledge %q for random examples: %w", k.block.Name, err)
	}
	k.drawn.hash.Do(func() {
		k.drawn.hashes = make([]uint64, len(all))
		for i := range all {
			k.drawn.hashes[i] = hashOf(0, all[i].ID)
		}
	})
	lottery := lottery{hashes: k.drawn.hashes, parts: max(1, draw.Parts)}
	lottery.each = (draw.Count + lottery.parts - 1) / lottery.parts
	draws := make([][]sdk.Candidate, len(ids))
	if draw.Count <= 0 {
		return draws, nil
	}
	for i, id := range ids {
		if draw.Shared && !others && i > 0 {
			draws[i] = draws[0]
			continue
		}
		item, own := hashOf(draw.Seed, id), -1
		if draw.Shared {
			item = hashOf(draw.Seed, "")
		}
		if others {
			own = slices.IndexFunc(all, func(c sdk.Candidate) bool { return c.ID == id })
		}
		drawn := lottery.draw(item, own)
		draws[i] = make([]sdk.Candidate, min(len(drawn), draw.Count))
		for j := range draws[i] {
			draws[i][j] = all[drawn[j].entry]
		}
	}
	return draws, nil
}

// lottery draws entries by the hashes of their ids.
type lottery struct {
	hashes []uint64
	parts  int // of a draw
	each   int // entries of a part
}

// ticket is an entry with its weight in one draw.
type ticket struct {
	weight uint64
	entry  int
}

// heavier sorts the heaviest first; of equals, which are next to impossible, the one whose
// id comes first.
func heavier(a, b ticket) int {
	return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.entry, b.entry))
}

// draw returns the heaviest entries of an item, part by part; own is left out.
func (l lottery) draw(item uint64, own int) []ticket {
	parts, full := make([][]ticket, l.parts), 0
	least := uint64(0) // that an entry has to weigh in any part
	for i, h := range l.hashes {
		w := mix(h ^ item)
		if w < least || i == own {
			continue
		}
		of := &parts[l.part(w)]
		at, _ := slices.BinarySearchFunc(*of, ticket{w, i}, heavier)
		switch {
		case at == l.each:
			continue
		case len(*of) == l.each:
			*of = (*of)[:l.each-1]
		case len(*of) == l.each-1:
			full++
		}
		if *of = slices.Insert(*of, at, ticket{w, i}); full == l.parts {
			least = (*of)[l.each-1].weight
			for _, other := range parts {
				least = min(least, other[l.each-1].weight)
			}
		}
	}
	if full < l.parts {
		l.fill(parts, item, own)
	}
	return slices.Concat(parts...)
}

// part is that of an entry: by bits of its weight that do not order it.
func (l lottery) part(weight uint64) int { return int(weight & (1<<32 - 1) * uint64(l.parts) >> 32) }

// fill gives the parts that are not full the heaviest entries that no part has.
func (l lottery) fill(parts [][]ticket, item uint64, own int) {
	taken := map[int]bool{own: true}
	for _, part := range parts {
		for _, t := range part {
			taken[t.entry] = true
		}
	}
	var rest []ticket
	for i, h := range l.hashes {
		if !taken[i] {
			rest = append(rest, ticket{mix(h ^ item), i})
		}
	}
	slices.SortFunc(rest, heavier)
	for i := range parts {
		n := min(l.each-len(parts[i]), len(rest))
		parts[i], rest = append(parts[i], rest[:n]...), rest[n:]
	}
}

// hashOf is the hash of an id, or of a seed with an item's.
func hashOf(seed uint64, id string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	h.Write([]byte(id))
	return mix(h.Sum64())
}

// mix spreads every bit over all others: the finalizer of SplitMix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
