package snapshot

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// Read reads the last commit. What it has in common with old, the snapshot before
// or nil, is not read again.
func Read(ctx context.Context, t *table.Table, old *Snapshot) (*Snapshot, error) {
	return again(ctx, func() (*Snapshot, error) {
		began := time.Now() // the reply may take its time
		r, err := last(ctx, t)
		if err != nil {
			return nil, err
		}
		if old != nil && old.Record.Same(&r) {
			same := *old
			same.Table, same.OnServer, same.Seen = t, true, began
			return &same, nil
		}
		s := Empty(t, true)
		s.Record, s.Seen = r, began
		return s, s.readBlobs(ctx, old)
	})
}

func last(ctx context.Context, t *table.Table) (Record, error) {
	turns, err := ReadTurns(ctx, t)
	if err != nil {
		return Record{}, err
	}
	return turns.Last()
}

// again repeats what a newer commit came in between of.
func again[T any](ctx context.Context, read func() (T, error)) (T, error) {
	pauses := backoff.Backoff{First: 200 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		result, err := read()
		if err == nil || attempt == 5 || sdk.CodeOf(err) != sdk.CodeTransient {
			return result, err
		}
		if err := backoff.Sleep(ctx, pauses.Delay(attempt)); err != nil {
			return result, err
		}
	}
}

// Describe reads the last commit without what only a search needs.
func Describe(ctx context.Context, t *table.Table) (sdk.Collection, error) {
	return again(ctx, func() (sdk.Collection, error) {
		r, err := last(ctx, t)
		if err != nil {
			return sdk.Collection{}, err
		}
		note, err := readBlob(ctx, t, KindNote, r.Note)
		return sdk.Collection{Name: t.Collection, Entries: r.Entries, Dimension: t.Schema.Dimension, Note: note}, err
	})
}

// readBlobs reads what the record refers to.
func (s *Snapshot) readBlobs(ctx context.Context, old *Snapshot) (err error) {
	if s.Note, err = readBlob(ctx, s.Table, KindNote, s.Record.Note); err != nil {
		return err
	}
	unread := s.Record.Statistics
	if old != nil && old.Record.Origin == s.Record.Origin {
		if n := len(old.Record.Statistics); n <= len(unread) && slices.Equal(old.Record.Statistics, unread[:n]) {
			unread = unread[n:]
			s.Frequencies = maps.Clone(old.Frequencies)
		}
	}
	for _, b := range unread {
		content, err := readBlob(ctx, s.Table, KindStatistics, b)
		if err == nil {
			err = decode(content, &s.Frequencies)
		}
		if err != nil {
			return err
		}
	}
	maps.DeleteFunc(s.Frequencies, func(_, entries uint32) bool { return entries == 0 })
	for _, b := range s.Record.Dead {
		var numbers []int64
		content, err := readBlob(ctx, s.Table, KindDead, b)
		if err == nil {
			err = decode(content, &numbers)
		}
		if err != nil {
			return err
		}
		for _, n := range numbers {
			s.Dead[n] = struct{}{}
		}
	}
	return nil
}
