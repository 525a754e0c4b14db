package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// kept is an item that is being completed.
type kept struct {
	Item
	row     source.Row
	seen    *journal.Seen
	unasked *outcome.Bill
	passed  bool // what was seen of such an item is only kept where the run keeps all
}

func keptOf(item *journal.Item, b *Brief) *kept {
	passed := item.Seen == nil && item.Status != journal.Unreached && item.Result.Decided == nil && !journal.Notable(&item.Result)
	return &kept{Item: Item{Brief: *b}, row: item.Row, seen: item.Seen, unasked: item.Result.Unasked, passed: passed}
}

func (k *kept) lose(format string, args ...any) {
	k.Gone = append(k.Gone, fmt.Sprintf(format, args...))
}

// complete adds to items what was seen of them. What is not there any more is said in each. One
// batch is completed at a time.
func (r *Run) complete(ctx context.Context, items []*kept) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	weights := r.Weights().Weights
	for _, k := range items {
		r.list(k)
		r.decide(k)
		k.Weights = weights
		if k.passed && r.journal.Manifest.Answers != manifest.Passages {
			k.lose("what was seen: the run keeps that of items that are flagged, failed, wrong or without an answer; keep = \"all\" in the pipeline's journal block keeps it of every item")
		}
	}
	if err := r.look(ctx, items); err != nil {
		return err
	}
	r.prompt(ctx, items)
	for _, k := range items {
		r.reply(k)
		for i := range k.Lists {
			if l := &k.Lists[i]; l.found != nil {
				l.Candidates = result.Candidates(l.found)
			}
		}
		slices.Sort(k.Gone)
	}
	return ctx.Err()
}

// retrievalOnly reports whether the item's candidates are its result.
func (k *kept) retrievalOnly() bool { return len(k.Candidates) > 0 }

// list makes the lists of an item, without texts. Those of which the result has the candidates come
// with theirs.
func (r *Run) list(k *kept) {
	if k.seen != nil {
		for _, l := range k.seen.Lists {
			k.Lists = append(k.Lists, List{Stage: l.Stage, Whole: l.Whole, found: bare(l.Found)})
		}
		if older := k.seen.Candidates; len(older) > 0 {
			k.Lists = append(k.Lists, List{Stage: r.lastList(), found: bare(older)})
		}
	}
	if k.retrievalOnly() {
		k.Lists = append(k.Lists, List{Stage: r.lastList(), Candidates: k.Candidates})
	}
}

func bare(all []journal.Scored) []sdk.Candidate {
	found := make([]sdk.Candidate, len(all))
	for i, c := range all {
		found[i] = sdk.Candidate{ID: c.ID, Score: c.Score, Dense: c.Dense, Lexical: c.Lexical}
	}
	return found
}

// lastList names the last stage that leaves candidates, where the journal does not.
func (r *Run) lastList() string {
	if r.pipeline == nil {
		return ""
	}
	for _, s := range slices.Backward(r.pipeline.Definition().Stages) {
		if s.Enabled && (s.Block == "retrieve" || s.Block == "rerank") {
			return s.Block + "." + s.Name
		}
	}
	return ""
}
