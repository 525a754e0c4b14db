package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// additions holds what an enricher adds to the passages of a document.
type additions struct {
	passages []sdk.Addition
	failed   map[int]error // why a passage has no addition
}

// enrich returns the additions of whole documents. The additions note passages that failed without others; an error
// ends the build.
func (e *enricher) enrich(ctx context.Context, t turn, documents []generation.Document) ([]additions, error) {
	defer t.taken()
	made := make([]additions, len(documents))
	for i, d := range documents {
		made[i].passages = make([]sdk.Addition, len(d.Chunks))
	}
	if e.process == nil {
		return made, e.count(documents)
	}
	var calls errgroup.Group
	calls.SetLimit(ahead * cap(e.slots))
	for rest, result := documents, made; len(rest) > 0; {
		n := e.portion(rest)
		part, its := rest[:n], result[:n]
		rest, result = rest[n:], result[n:]
		calls.Go(func() error { return e.work(ctx, t, part, its) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	return made, nil
}

// portion returns how many of the first documents of a group fit in one call.
func (e *enricher) portion(documents []generation.Document) int {
	most, passages, bytes := e.size(), 0, 0
	for i, d := range documents {
		if i > 0 && !most.fits(passages, bytes, d) {
			return i
		}
		passages, bytes = passages+len(d.Chunks), bytes+len(d.Text)
	}
	return len(documents)
}

// work asks for the additions of documents, and retries if that may help, until the build ends. If a passage spoils
// a call, work divides the call, so that only that passage is lost; the stage then does not see the whole document.
func (e *enricher) work(ctx context.Context, t turn, documents []generation.Document, made []additions) error {
	type place struct{ document, chunk int }
	var places []place
	var passages []sdk.Passage
	for i, d := range documents {
		made[i].failed = map[int]error{}
		for j, p := range d.Passages() {
			if why, ok := e.failed.Load(failedPassage{d.ID, string(d.Hash), j}); ok {
				made[i].failed[j] = why.(error)
				continue
			}
			places, passages = append(places, place{i, j}), append(passages, p)
		}
	}
	found := make([]sdk.Addition, len(passages))
	w := retry.Work{
		Retries: e.stage.Retries, Stage: "enrich." + e.stage.Name, Waits: e.later.Waits,
		Ended: t.ended.Done(), Cause: func() error { return context.Cause(t.ended) },
		Call: func(ctx context.Context, at []int) error {
			got, err := e.ask(ctx, t, generation.Pick(passages, at))
			return generation.Spread(found, at, got, err)
		},
	}
	for n, err := range w.Do(ctx, len(passages)) {
		i, j := places[n].document, places[n].chunk
		switch ended := e.ended(err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case ended != nil:
			return ended
		case err != nil:
			made[i].failed[j] = err
			e.failed.Store(failedPassage{documents[i].ID, string(documents[i].Hash), j}, err)
		default:
			made[i].passages[j] = found[n]
		}
	}
	return nil
}

// ask calls the process. An error that is not sdk.RowErrors concerns all passages.
func (e *enricher) ask(ctx context.Context, t turn, passages []sdk.Passage) ([]sdk.Addition, error) {
	found, all := make([]sdk.Addition, len(passages)), make([]int, len(passages))
	for i := range all {
		all[i] = i
	}
	call := func(ctx context.Context, handle string, at []int) error {
		if err := t.acquire(ctx, e.slots); err != nil {
			return err
		}
		defer func() { <-e.slots }()
		err := e.stage.Patience().Bounded(ctx, len(at), func(ctx context.Context) error {
			got, err := e.invoke(ctx, handle, generation.Pick(passages, at))
			return generation.Spread(found, at, got, err)
		})
		e.endBy(t, err) // before another call gets the slot
		return err
	}
	if e.stage.Info.Pends {
		rows := seen(passages)
		w := e.later.Work("enrich."+e.stage.Name, e.stage, e.process, func(i int) []string { return rows[i] })
		w.Call, w.Ended, w.Cause = call, t.ended.Done(), func() error { return context.Cause(t.ended) }
		return found, w.Do(ctx, all)
	}
	return found, call(ctx, "", all)
}

// invoke asks, or collects a result that came later.
func (e *enricher) invoke(ctx context.Context, handle string, passages []sdk.Passage) ([]sdk.Addition, error) {
	if c, ok := e.process.(sdk.EnrichCollector); ok && handle != "" {
		return c.CollectAdditions(ctx, handle, passages)
	}
	return e.process.Enrich(ctx, passages)
}

// seen identifies what an enricher sees of each passage. Passages of the same document must be adjacent.
func seen(passages []sdk.Passage) [][]string {
	all, document := make([][]string, len(passages)), ""
	for i, p := range passages {
		if i == 0 || p.Document != passages[i-1].Document {
			meta, _ := json.Marshal(p.Document.Meta) // cannot fail: strings, numbers and booleans
			document = retry.HandleKey(p.Document.ID, p.Document.Text, string(meta))
		}
		chunk, _ := json.Marshal(p.Chunk)
		all[i] = []string{document, string(chunk)}
	}
	return all
}

// ended returns the error that ends the build if err ends it, whichever document caused it; nil: the build
// continues.
func (e *enricher) ended(err error) error {
	if ended := new(endedError); errors.As(err, &ended) {
		return err
	}
	if code := sdk.CodeOf(err); err == nil || code != sdk.CodeUnavailable && code != sdk.CodeStopped {
		return nil
	}
	return &endedError{e.named(err)}
}

// endBy ends the build if the error of a call, or of one of its rows, requires it.
func (e *enricher) endBy(t turn, err error) {
	var rows sdk.RowErrors
	if !errors.As(err, &rows) {
		rows = sdk.RowErrors{0: err}
	}
	for _, why := range rows {
		if ended := e.ended(why); ended != nil {
			t.end(ended)
		}
	}
}

// endedError says that an enricher cannot continue now, but that a later build can.
type endedError struct{ err error }

func (e *endedError) Error() string {
	return e.err.Error() + "; its answers are kept: the same command resumes from there"
}

func (e *endedError) Unwrap() error { return e.err }

// defaultBatch is the most passages per call of a stage that states no batch size.
const defaultBatch = 256

// Each calls f with the documents of produce, in their order, and with the additions of each enricher. It holds
// only a window of documents.
//
// If an enricher cannot continue, Each asks no more, but waits for answers in progress: they are paid for.
func (all Enrichers) Each(ctx context.Context, produce func(context.Context, func(generation.Document) error) error, f func(generation.Document, []additions) error) error {
	if len(all) == 0 {
		return produce(ctx, func(d generation.Document) error { return f(d, nil) })
	}
	most, groups := all.sizes()
	producing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	room := semaphore.NewWeighted(generation.BatchBytes)
	queue := make(chan *group, ahead*groups)
	var failed, produced error
	go func() {
		defer close(queue)
		begun := make([]chan struct{}, len(all))
		produced = grouped(producing, most, produce, func(g *group) error {
			g.room = roomOf(g.bytes, groups)
			if err := room.Acquire(producing, g.room); err != nil {
				return err
			}
			g.start(working, producing, all, begun, stop)
			queue <- g // does not block: the queue has room
			return nil
		})
	}()
	for g := range queue {
		<-g.done
		if failed == nil {
			if failed = g.err; failed == nil {
				failed = g.each(f)
			}
			if failed != nil {
				stop(failed)
				if ended := new(endedError); !errors.As(failed, &ended) {
					cancel()
				}
			}
		}
		room.Release(g.room)
	}
	if failed != nil {
		return failed
	}
	return produced
}

// ahead times as many groups are held as enrichers work on. So a slow group delays the groups behind it only when
// that many wait.
const ahead = 4

// roomOf returns a group's share of generation.BatchBytes. The share is small enough for all groups in progress to
// fit, and large enough that ahead times as many groups fill BatchBytes.
func roomOf(bytes, groups int) int64 {
	return int64(max(min(bytes, generation.BatchBytes/groups), generation.BatchBytes/(ahead*groups)))
}

// size limits a group; a single document may exceed it.
type size struct{ passages, bytes int }

// gathered limits a group for an enricher that asks in batches: the passages of a service's batch, and half the
// bytes of a message.
var gathered = size{50_000, wire.MaxMessage / 2}

// sideBySide is how many groups enrichers work on at a time if an enricher asks in batches.
const sideBySide = 4

// sizes returns the size of groups, which is the smallest that an enricher wants, and how many groups the enrichers
// work on at a time. If an enricher asks in batches, such enrichers set the size, and the others get groups in
// parts.
func (all Enrichers) sizes() (most size, groups int) {
	gather := slices.ContainsFunc(all, (*enricher).gathers)
	if most = (size{defaultBatch, generation.BatchBytes}); gather {
		most = gathered
	}
	for _, e := range all {
		groups = max(groups, cap(e.slots))
		if e.gathers() == gather {
			most.passages = min(most.passages, e.size().passages)
		}
	}
	if gather {
		groups = sideBySide
	}
	return most, groups
}

// gathers reports whether the enricher runs and asks in batches.
func (e *enricher) gathers() bool { return e.process != nil && e.stage.Gathers() }

// size limits a call of the enricher. A call to a service has one document, unless its results may
// come later.
func (e *enricher) size() size {
	switch {
	case e.gathers():
		return size{cmp.Or(e.stage.Batch, gathered.passages), gathered.bytes}
	case e.stage.Info.Network && !e.stage.Info.Pends:
		return size{1, generation.BatchBytes}
	}
	return size{cmp.Or(e.stage.Batch, e.stage.Info.Batch, defaultBatch), generation.BatchBytes}
}

// fits reports whether a call or group has room for another document.
func (s size) fits(passages, bytes int, d generation.Document) bool {
	return passages+len(d.Chunks) <= s.passages && bytes+len(d.Text) <= s.bytes
}

// grouped calls f with documents in groups of at most a size.
func grouped(ctx context.Context, most size, produce func(context.Context, func(generation.Document) error) error, f func(*group) error) error {
	pending := &group{}
	flush := func() error {
		full := pending
		pending = &group{}
		if len(full.documents) == 0 {
			return nil
		}
		return f(full)
	}
	err := produce(ctx, func(d generation.Document) error {
		if !most.fits(pending.passages, pending.bytes, d) {
			if err := flush(); err != nil {
				return err
			}
		}
		pending.documents = append(pending.documents, d)
		pending.passages, pending.bytes = pending.passages+len(d.Chunks), pending.bytes+len(d.Text)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}
