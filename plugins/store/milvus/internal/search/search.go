package search

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
)

// workers is how many calls of one search are on their way at a time.
const workers = 4

// Searcher reads one collection. It is safe for concurrent use.
type Searcher struct {
	View *snapshot.View
	Log  *slog.Logger
	// VectorBytes is how much memory the vectors of found rows may take. Those of a
	// collection that needs more are not kept.
	VectorBytes int

	// needsServerFilter is the number of a commit whose searches found too many
	// rows that are not of it: until the next one the server leaves them out.
	needsServerFilter atomic.Int64
	vectors           vectors
}

// Search finds the best entries of each leg. Where a query has a vector, lexical
// hits carry their cosine too, and in a hybrid search dense hits their BM25 score.
func (s *Searcher) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	opened, err := s.View.Opened()
	if err != nil {
		return nil, err
	}
	dense, lexical := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case dense && lexical && search.Mode != sdk.ModeHybrid:
		return nil, sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case dense && opened.Schema.Dimension == 0:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", search.Mode, sdk.ModeLexical))
	case lexical && opened.Analyzer == nil:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", search.Mode, sdk.ModeDense))
	}
	var hits []sdk.Hits
	invalid := sdk.RowErrors{}
	err = s.View.Read(ctx, func(snap *snapshot.Snapshot) error {
		clear(invalid)
		hits = make([]sdk.Hits, len(given))
		at := make([]int, 0, len(given))
		queries := make([]*query, 0, len(given))
		for i, q := range given {
			parsed, err := newQuery(snap, q, dense)
			if err != nil {
				invalid[i] = sdk.Invalid(err)
				continue
			}
			at, queries = append(at, i), append(queries, parsed)
		}
		if search.NumCandidates > 0 && snap.Record.Entries > 0 {
			l := leg{Snapshot: snap, searcher: s, wanted: search.NumCandidates, texts: search.Texts, bm25: lexical, formula: snap.Formula()}
			if err := l.both(ctx, queries, dense, lexical); err != nil {
				return err
			}
		}
		for i, q := range queries {
			if dense {
				hits[at[i]].Dense = sdkHits(q.dense)
			}
			if lexical {
				hits[at[i]].Lexical = sdkHits(q.lexical)
			}
		}
		return nil
	})
	if err == nil && len(invalid) > 0 {
		err = invalid
	}
	return hits, err
}

// both searches with the legs at once. The lexical leg is on its way first: a server
// that makes one search after the other then finds the cosines of its hits while the
// dense leg, which takes it longer, is decoded here.
func (l leg) both(ctx context.Context, queries []*query, dense, lexical bool) error {
	if !lexical {
		return l.search(ctx, queries)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if dense { // another goroutine begins later than this one goes on
			g.Go(func() error { return l.search(ctx, queries) })
		}
		lexical := l
		lexical.lexical = true
		if err := lexical.search(ctx, queries); err != nil {
			return err
		}
		return lexical.addCosines(ctx, queries)
	})
	return g.Wait()
}

func sdkHits(all []hit) []sdk.Hit {
	hits := make([]sdk.Hit, len(all))
	for i := range all {
		hits[i] = sdk.Hit{ID: all[i].Entry.ID, Dense: all[i].dense, Lexical: all[i].bm25, Entry: &all[i].Entry}
	}
	return hits
}
