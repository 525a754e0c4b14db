package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// kept is an item that is being completed.
type kept struct {
	Item
	row  source.Row
	seen *journal.Seen
}

func (k *kept) lose(format string, args ...any) {
	k.Gone = append(k.Gone, fmt.Sprintf(format, args...))
}

// complete adds to items what was seen of them. What is not there any more is said in each. One
// batch is completed at a time.
func (r *Run) complete(ctx context.Context, items []*kept) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range items {
		switch {
		case k.seen != nil:
			r.list(k)
		case k.Status != journal.Unreached && !k.retrievalOnly():
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
			k.Lists[i].Candidates = result.Candidates(k.Lists[i].found)
		}
		slices.Sort(k.Gone)
	}
	return ctx.Err()
}

func (k *kept) retrievalOnly() bool { return len(k.Candidates) > 0 }

// list makes the lists of an item, without texts.
func (r *Run) list(k *kept) {
	if len(k.seen.Candidates) == 0 {
		return
	}
	l := List{Stage: r.lastList(), found: make([]sdk.Candidate, len(k.seen.Candidates))}
	for i, c := range k.seen.Candidates {
		l.found[i] = sdk.Candidate{ID: c.ID, Score: c.Score, Dense: sdk.Unscored, Lexical: sdk.Unscored}
	}
	k.Lists = append(k.Lists, l)
}

// lastList names the stage whose candidates older journals have.
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
