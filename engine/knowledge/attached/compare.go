package attached

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/centroid"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
)

// What a comparison of vectors takes and means: a mean cosine below Foreign is that of another
// embedder, from Alike on it is that of the same one.
const (
	Compared = 50 // entries that are embedded again, at most
	Foreign  = 0.5
	Alike    = 0.95
)

// longest is how many bytes a text may have that is embedded again: as many as a store takes.
const longest = 60_000

// comparison is what came of embedding entries of a sample again.
type comparison struct {
	Sample   string  `json:"sample"`   // digest
	Embedder string  `json:"embedder"` // identity
	State    []byte  `json:"state,omitempty"`
	Compared int     `json:"compared"` // entries; 0: none has a text and a vector
	Cosine   float64 `json:"cosine"`   // their mean
	Context  bool    `json:"context"`  // it is that of contexts and texts, which was higher than that of texts
}

// compare embeds some entries again, and compares the vectors with theirs. Whoever made the
// collection may have embedded the contexts together with the texts: the better of the two counts.
func (c *Collection) compare(ctx context.Context, to *comparison) error {
	chosen, err := c.sample.choose(Compared)
	if err != nil || len(chosen) == 0 {
		return err
	}
	texts, whole, contexts := make([]string, len(chosen)), make([]string, len(chosen)), false
	for i, e := range chosen {
		texts[i], whole[i] = e.Text, e.Text
		if e.Context != "" {
			whole[i], contexts = e.Context+"\n"+e.Text, true
		}
	}
	if to.Cosine, to.Compared, err = c.cosine(ctx, chosen, texts); err != nil || !contexts {
		return err
	}
	cosine, compared, err := c.cosine(ctx, chosen, whole)
	if err == nil && cosine > to.Cosine {
		to.Cosine, to.Compared, to.Context = cosine, compared, true
	}
	return err
}

// cosine embeds texts as passages, and returns the mean cosine with the vectors of the entries
// that they are of, and of how many. Texts that cannot be embedded are left out, unless none can.
func (c *Collection) cosine(ctx context.Context, of []sdk.Entry, texts []string) (mean float64, compared int, err error) {
	vectors := make([][]float32, len(texts))
	work := retry.Work{Retries: c.block.Embed.Retries, Stage: "embed." + c.block.Name, Waits: c.options.Waits, Call: func(ctx context.Context, at []int) error {
		return retry.Bounded(ctx, c.block.Embed, func(ctx context.Context) error {
			return pending.Work{Call: func(ctx context.Context, at []int) error {
				found, err := c.Embedder.Embed(ctx, sdk.RolePassage, stages.Pick(texts, at))
				return stages.Spread(vectors, at, found, err)
			}}.Do(ctx, at)
		})
	}}
	var first error
	for i, err := range work.Do(ctx, len(texts)) {
		norms := math.Sqrt(centroid.Dot(vectors[i], vectors[i]) * centroid.Dot(of[i].Vector, of[i].Vector))
		if first = cmp.Or(first, err); err == nil && norms > 0 && len(vectors[i]) == len(of[i].Vector) {
			mean += centroid.Dot(vectors[i], of[i].Vector) / norms
			compared++
		}
	}
	if compared == 0 {
		return 0, 0, cmp.Or(ctx.Err(), first)
	}
	return mean / float64(compared), compared, ctx.Err()
}

// choose returns at most n entries with a text and a vector, at random and always the same ones,
// by a hash of their ids.
func (s *sample) choose(n int) (chosen []sdk.Entry, err error) {
	type ticket struct {
		hash  uint64
		entry sdk.Entry
	}
	var drawn []ticket
	for page, err := range s.pages(sdk.Scan{Texts: true, Vectors: true}) {
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if len(e.Context)+len(e.Text) > longest {
				continue
			}
			h := fnv.New64a()
			h.Write([]byte(e.ID))
			one := ticket{h.Sum64(), e}
			at, _ := slices.BinarySearchFunc(drawn, one, func(a, b ticket) int { return cmp.Compare(a.hash, b.hash) })
			if at < n {
				drawn = slices.Insert(drawn, at, one)
				drawn = drawn[:min(n, len(drawn))]
			}
		}
	}
	for _, t := range drawn {
		chosen = append(chosen, t.entry)
	}
	return chosen, nil
}
