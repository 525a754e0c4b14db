package milvus

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// This file searches. The server's order is that of store/local, but for rounding and ties: a leg reads some more
// rows than wanted.

// leg is one leg of a search.
func (k *known) leg(lexical bool, search sdk.Search) table.Leg {
	l := table.Leg{
		Rows: k.Rows(table.AsConfigured), Field: table.FieldVector, Metric: table.MetricIP, Type: schemapb.DataType_FloatVector,
		Index: k.IndexType, Params: k.Options.SearchParams,
		Wanted: search.NumCandidates, First: search.NumCandidates + 16, Ties: true,
		Outputs: func(filtered bool) []string {
			if filtered {
				return append(slices.Clone(table.FieldsScan), table.FieldMeta)
			}
			return table.FieldsScan
		},
		Score: func(server float32) float32 { return server },
	}
	if lexical {
		l.Field, l.Metric = table.FieldBM25, table.MetricBM25
		// Servers multiply BM25 by k1 + 1. Milvus Lite 3 gives it as a distance, below 0.
		l.Score = func(server float32) float32 { return max(server, -server) / float32(k.Options.K1+1) }
	}
	l.Hit = func(q *table.Query, r table.Scored) (table.Hit, bool) {
		f, err := table.Decode(r.ReplyRow)
		h := table.Hit{Found: &f, Dense: sdk.Unscored, BM25: sdk.Unscored}
		if lexical {
			h.BM25 = l.Score(r.Score)
		} else {
			h.Dense = l.Score(r.Score)
		}
		return h, err == nil && q.Filter.Match(f.Entry.ID, f.Entry.Label, f.Entry.Meta)
	}
	l.Exhausted = func(ctx context.Context, q *table.Query) error { return k.every(ctx, l, q) }
	return l
}

// every has the server score all entries, some at a time, where too much of what it finds falls away.
func (k *known) every(ctx context.Context, l table.Leg, q *table.Query) error {
	var best []table.Hit
	var some []*table.Hit
	score := func() error {
		err := l.Fill(ctx, q, some)
		for _, h := range some {
			if h.Score(l.Lexical()) > 0 || !l.Lexical() {
				best = append(best, *h)
			}
		}
		best, some = table.Best(best, l.Lexical(), l.Wanted), nil
		return err
	}
	var failed error
	err := walk(ctx, k, q.Filter, "", l.Outputs(true), func(f table.Found) bool {
		if q.Filter.Match(f.Entry.ID, f.Entry.Label, f.Entry.Meta) {
			if some = append(some, &table.Hit{Found: &f, Dense: sdk.Unscored, BM25: sdk.Unscored}); len(some) == table.LookUp {
				failed = score()
			}
		}
		return failed == nil
	})
	if err == nil && failed == nil {
		failed = score()
	}
	*q.Found(l.Lexical()) = best
	return cmp.Or(err, failed)
}

// wordless reports whether no entry has a word. Milvus Lite 2 divides by zero then, and may end.
func (k *known) wordless(ctx context.Context) (bool, error) {
	if k.hasWords.Load() || !k.onServer {
		return !k.onServer, nil
	}
	rows, _, err := k.Rows(table.AsConfigured).Query(ctx, table.FieldWords+` != ""`, []string{table.FieldKey}, 1)
	k.hasWords.Store(len(rows) > 0)
	return len(rows) == 0, err
}

// newQuery prepares a query that was checked.
func (k *known) newQuery(given sdk.Query) *table.Query {
	q := &table.Query{Filter: given.Filter, Condition: table.ConditionOf(given.Filter)}
	if x := given.Vector; slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		q.Vector = make([]float32, table.FieldWidth(len(x)))
		copy(q.Vector, table.UnitVector(x))
	}
	if k.Analyzer != nil {
		q.Text = k.Words(given.Text)
	}
	return q
}

// search finds the best entries of each leg. In a hybrid search hits of both legs carry both scores.
// Texts the SDK gets of what it keeps.
func (w *writer) search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	k, err := w.opened()
	if err != nil {
		return nil, err
	}
	dense, lexical, err := table.Modes(search.Mode)
	var legs []table.Leg
	switch {
	case err != nil:
		return nil, err
	case dense && k.Schema.Dimension == 0:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", search.Mode, sdk.ModeLexical))
	case lexical && k.Analyzer == nil:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", search.Mode, sdk.ModeDense))
	}
	if !k.onServer {
		search.NumCandidates = 0
	}
	if dense {
		legs = append(legs, k.leg(false, search))
	}
	if lexical {
		words := k.leg(true, search)
		if words.Wordless, err = k.wordless(ctx); err != nil {
			return nil, err
		}
		legs = append(legs, words)
	}
	return table.Find(ctx, search, given, k.Schema.Dimension, k.newQuery, legs...)
}
