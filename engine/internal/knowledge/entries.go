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

// Extent returns the number of entries and a rough number of their tokens: the characters of texts
// and contexts, divided by four, as in an estimate. It ignores terms added for the search, and the
// text that a prompt writes around a passage. Extent walks through the store each time.
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

// all holds entries in memory.
type all struct {
	once    sync.Once
	err     error
	entries []sdk.Candidate

	hash   sync.Once
	hashes []uint64 // of the entries' ids
}

// read reads the entries once and sorts them in the order of All.
func (a *all) read(pages func() iter.Seq2[[]sdk.Entry, error]) ([]sdk.Candidate, error) {
	a.once.Do(func() {
		a.err = each(pages(), func(entry sdk.Entry) { a.entries = append(a.entries, candidate(entry)) })
		slices.SortFunc(a.entries, generation.InOrder)
	})
	return a.entries, a.err
}

// All returns every entry as an unscored candidate. It sorts entries of documents by document id and
// then by place, and rows by id, so that the same content always has the same order. All reads the
// store once and holds the result in memory: the caller must not change it.
func (k *Knowledge) All(ctx context.Context) ([]sdk.Candidate, error) {
	found, err := k.all.read(func() iter.Seq2[[]sdk.Entry, error] { return k.backing.Whole(ctx, sdk.Scan{Texts: true}) })
	if err != nil {
		return nil, fmt.Errorf("read all of knowledge %q: %w", k.block.Name, err)
	}
	return found, nil
}

// backing reads the entries of a knowledge outside searches. It is an index version that racflow has
// built, or an attached collection and its sample.
type backing interface {
	// Pages yields the wanted parts of the entries that stages learn from. It ends after an error.
	Pages(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Whole yields every entry, or an error that says why that is impossible.
	Whole(ctx context.Context, want sdk.Scan) iter.Seq2[[]sdk.Entry, error]
	// Scale projects the extent of the entries of Pages to all entries.
	Scale(e rule.Extent) rule.Extent
	// Nearest returns the nearest label centroids of each vector, at most n.
	Nearest(ctx context.Context, vectors [][]float32, n int) ([][]sdk.Candidate, error)
	// Hold and Leave are as in Knowledge.
	Hold(ctx context.Context, holder string) error
	Leave(ctx context.Context, holder string, drop bool) (dropped bool, err error)
}

// built is an index version in a store.
type built struct {
	store      generation.Store
	collection string
	content    string
	schema     sdk.Schema
	// search is Knowledge.search; it searches the centroids.
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
	return b.search(ctx, generation.Centroids(b.collection), nearest(n), queries, 0) // 0: these rows are counted already
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

// Random draws entries for each item by rendezvous hashing (Thaler and Ravishankar, "Using name-based
// mappings to increase hit rates", IEEE/ACM Transactions on Networking 6(1), 1998). An item is named
// by its id or, without one, its text. An entry's weight is a hash of the seed, the item and the
// entry's id; Random draws the heaviest entries. So adding, changing or removing an entry changes
// only draws that include it before or after. The hash also assigns each entry to one part of the
// draw, so that the other parts stay the same. If the knowledge has too few entries for a part, the
// part gets leftover entries of other parts.
//
// With others set, an item that is itself an entry does not draw itself.
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
	parts  int // number of parts of a draw
	each   int // entries per part
}

// ticket is an entry with its weight in one draw.
type ticket struct {
	weight uint64
	entry  int
}

// heavier sorts the heaviest first. It sorts equal weights, which are nearly impossible, by id.
func heavier(a, b ticket) int {
	return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.entry, b.entry))
}

// draw returns the heaviest entries for an item, part by part, without own.
func (l lottery) draw(item uint64, own int) []ticket {
	parts, full := make([][]ticket, l.parts), 0
	least := uint64(0) // the weight that an entry needs to enter any part
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

// part assigns an entry to a part, by bits of its weight that do not affect the order.
func (l lottery) part(weight uint64) int { return int(weight & (1<<32 - 1) * uint64(l.parts) >> 32) }

// fill completes the other parts with the heaviest entries that are in no part.
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

// hashOf hashes an entry's id, or a seed with an item's id.
func hashOf(seed uint64, id string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	h.Write([]byte(id))
	return mix(h.Sum64())
}

// mix spreads every bit over all others. It is the finalizer of SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
