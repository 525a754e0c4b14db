package crossencoder

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/sdk"
)

// Rerank implements sdk.Reranker.
func (r *reranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out, failed := make([][]sdk.Ranked, len(b.Items)), sdk.RowErrors{}
	var pairs []encoder.Pair
	var owners []*sdk.Ranked // where the score of each pair belongs
	chosen := make([]int, len(b.Items))
	for i := range b.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item := &b.Items[i]
		if len(item.Candidates) > 0 && strings.TrimSpace(item.Text) == "" {
			failed[i] = sdk.Invalid(errors.New(`the item has no text to rank by; on_error = "skip" leaves the order as it is`))
			continue
		}
		own, of := r.choose(item)
		out[i], chosen[i] = arrange(of, len(item.Candidates)), len(own)
		for k := range own {
			owners = append(owners, &out[i][k])
		}
		pairs = append(pairs, own...)
	}
	if len(pairs) > 0 {
		scores, err := r.model.Score(ctx, pairs)
		if err != nil {
			return nil, err
		}
		for k, score := range scores {
			owners[k].Score = score
		}
	}
	for i := range out {
		finish(out[i], chosen[i])
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

// choose returns the pairs of an item that are scored, and the candidate of each.
func (r *reranker) choose(item *sdk.Item) (pairs []encoder.Pair, of []int) {
	tokens := 0
	for i := range item.Candidates {
		if len(pairs) == r.Top {
			break
		}
		pair := encoder.Pair{Query: item.Text, Passage: r.passage(&item.Candidates[i])}
		if strings.TrimSpace(pair.Passage) == "" {
			continue
		}
		if r.tokens > 0 {
			if tokens += r.model.Tokens(pair); tokens > r.tokens && len(pairs) > 0 {
				r.limited.Do(func() {
					r.log.Warn("the budget leaves candidates unscored, which keep their order behind the others: raise budget or lower top; this is said once",
						"item", item.ID, "scored", len(pairs), "of", min(r.Top, len(item.Candidates)), "tokens", r.tokens)
				})
				break
			}
		}
		pairs, of = append(pairs, pair), append(of, i)
	}
	return pairs, of
}

// passage is the text of a candidate that the model reads.
func (r *reranker) passage(c *sdk.Candidate) string {
	if !r.Context {
		return c.Text
	}
	placing, _ := sdk.SplitContext(c.Context)
	return strings.TrimSpace(placing + "\n" + c.Text)
}

// arrange returns n candidates without scores: those in chosen, which rises, then the others.
func arrange(chosen []int, n int) []sdk.Ranked {
	ranked := make([]sdk.Ranked, 0, n)
	for _, i := range chosen {
		ranked = append(ranked, sdk.Ranked{Candidate: i})
	}
	for i := range n {
		if _, ok := slices.BinarySearch(chosen, i); !ok {
			ranked = append(ranked, sdk.Ranked{Candidate: i})
		}
	}
	return ranked
}

// finish sorts the first n, which have scores, and gives the others one that is no better.
func finish(ranked []sdk.Ranked, n int) {
	slices.SortStableFunc(ranked[:n], func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	least := float32(0)
	if n > 0 {
		least = min(least, ranked[n-1].Score)
	}
	for i := n; i < len(ranked); i++ {
		ranked[i].Score = least
	}
}
