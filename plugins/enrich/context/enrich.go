package context

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

const (
	maxRequests = 64 // written or under way at a time: each holds a document
	maxGroups   = 8  // worked on at a time
)

// Enrich implements sdk.Enricher.
func (e *enricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	return e.CollectAdditions(ctx, "", passages)
}

// CollectAdditions implements sdk.EnrichCollector.
func (e *enricher) CollectAdditions(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return chatmodel.Later(ctx, e.Model, handle, func(ctx context.Context) ([]sdk.Addition, error) { return e.enrich(ctx, passages) })
}

func (e *enricher) enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	w := &work{enricher: e, passages: passages, additions: make([]sdk.Addition, len(passages))}
	var groups errgroup.Group
	groups.SetLimit(maxGroups)
	for from, to := range api.Documents(passages) {
		w.document(ctx, &groups, from, to)
	}
	_ = groups.Wait() // errors are of single rows
	return api.Results(ctx, w.additions, &w.failed)
}

// work is one call of Enrich.
type work struct {
	*enricher
	passages  []sdk.Passage
	additions []sdk.Addition
	failed    api.Failed
}

// windows returns the rows of a document by the window of it that they are shown in, and the
// windows in order.
func (w *work) windows(from, to int) (v view, rows map[int][]int, order []int) {
	v, rows = newView(w.passages[from].Document, w.config.ContextTokens), map[int][]int{}
	v.path = w.config.Path
	for row := from; row < to; row++ {
		if strings.TrimSpace(w.passages[row].Text()) == "" {
			continue
		}
		window := v.window(w.passages[row].Chunk)
		if rows[window] == nil {
			order = append(order, window)
		}
		rows[window] = append(rows[window], row)
	}
	return v, rows, order
}

// document starts the groups of a document's passages in the rows from and up to to: a
// group for each window.
func (w *work) document(ctx context.Context, groups *errgroup.Group, from, to int) {
	if ctx.Err() != nil {
		w.failed.Add(ctx.Err(), from)
		return
	}
	v, rows, order := w.windows(from, to)
	for _, window := range order {
		groups.Go(func() error {
			g := group{work: w, rows: rows[window]}
			err := ctx.Err()
			if err == nil {
				err = w.failed.Over()
			}
			if err == nil {
				err = g.begin(v, window)
			}
			if err == nil {
				g.rows, err = g.recall(ctx)
			}
			if err == nil {
				err = g.lead(ctx)
			}
			if err != nil {
				w.failed.Add(err, g.rows...)
				return nil
			}
			var calls errgroup.Group // without a context: answers to other requests are still cached
			calls.SetLimit(maxRequests)
			for _, row := range g.rows {
				calls.Go(func() error {
					err := w.failed.Over()
					if err == nil {
						_, err = g.ask(ctx, row)
					}
					if err != nil {
						w.failed.Add(err, row)
					}
					return nil
				})
			}
			return calls.Wait()
		})
	}
}
