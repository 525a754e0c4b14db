package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// record is what a commit leaves behind: the one row whose replacement is the
// commit.
type record struct {
	Version int   `json:"version"` // schemaVersion
	Commit  int64 `json:"commit"`  // number; rises, with gaps
	Next    int64 `json:"next"`    // sequence number
	Floor   int64 `json:"floor"`   // rows with lower sequence numbers are dead
	Entries int   `json:"entries"`
	Words   int64 `json:"words"` // of all entries together
	// The average lengths that the words of the rows are weighed with.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`

	Note       blob   `json:"note"`
	Statistics []blob `json:"statistics"` // later ones replace what earlier ones say
	Dead       []blob `json:"dead"`
	Time       int64  `json:"time"` // of the commit, in seconds since 1970, by the writer's clock
}

// average is the average length of a text; 1 where there are no words.
func (r *record) average() float64 {
	if r.Entries == 0 || r.Words == 0 {
		return 1
	}
	return float64(r.Words) / float64(r.Entries)
}

// state is what is known of the last commit. It is never changed.
type state struct {
	record record
	note   []byte
	df     map[uint32]uint32  // entries that have a word, by the word's number
	dead   map[int64]struct{} // sequence numbers

	shape
	seen time.Time // when it was found to be the last; set anew in copies
}

// shape is what does not change while a collection is open.
type shape struct {
	schema    sdk.Schema
	analyzer  *analyze.Analyzer // nil: no lexical side
	indexType string            // of the vectors; empty: not known
}

// visible is the expression for the rows of the state, dead ones included.
func (s *state) visible() string {
	return between(s.record.Floor, s.record.Next)
}

// sees reports whether a row is of the state, dead ones included.
func (s *state) sees(sequence int64) bool {
	return s.record.Floor <= sequence && sequence < s.record.Next
}

// between is the expression for the rows with sequence numbers from a first one
// on and below a last one.
func between(from, to int64) string {
	e := fmt.Sprintf("%s < %d", fieldSequence, to)
	if from > 0 {
		e += fmt.Sprintf(" and %s >= %d", fieldSequence, from)
	}
	return e
}

// readState reads the last commit. What old, the state known before, has in
// common with it is not read again. A collection without a record is empty.
func (c *collection) readState(ctx context.Context, has shape, old *state) (*state, error) {
	now := time.Now()
	r, err := c.readRecord(ctx)
	if err != nil {
		return nil, err
	}
	s := &state{record: r, seen: now, shape: has}
	if old != nil && old.record.Commit == s.record.Commit {
		same := *old
		same.seen, same.shape = now, has
		return &same, nil
	}
	return s, c.readBlobs(ctx, s, old)
}

// readRecord reads the record; an empty one where nothing was committed yet.
func (c *collection) readRecord(ctx context.Context) (record, error) {
	var r record
	texts, err := c.special(ctx, []string{keyRecord})
	if err != nil {
		return r, err
	}
	if text, ok := texts[keyRecord]; ok {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return r, fmt.Errorf("collection %q: its record is not readable: %w", c.name, err)
		}
	}
	if r.Version > schemaVersion {
		return r, sdk.Invalid(fmt.Errorf("collection %q was written by a newer racflow: use that", c.name))
	}
	return r, nil
}

// readNote reads the last commit without the statistics that a search needs.
func (c *collection) readNote(ctx context.Context) (record, []byte, error) {
	for try := 1; ; try++ {
		r, err := c.readRecord(ctx)
		var note []byte
		if err == nil {
			note, err = c.readBlob(ctx, kindNote, r.Note)
		}
		if err == nil || try == 5 || sdk.CodeOf(err) != sdk.CodeTransient {
			return r, note, err
		}
	}
}

// readBlobs reads what the record refers to.
func (c *collection) readBlobs(ctx context.Context, s, old *state) error {
	var err error
	if s.note, err = c.readBlob(ctx, kindNote, s.record.Note); err != nil {
		return err
	}
	unread := s.record.Statistics
	s.df = map[uint32]uint32{}
	if old != nil {
		if n := len(old.record.Statistics); n <= len(unread) && slices.Equal(old.record.Statistics, unread[:n]) {
			unread = unread[n:]
			s.df = maps.Clone(old.df)
		}
	}
	for _, b := range unread {
		content, err := c.readBlob(ctx, kindTerms, b)
		if err == nil {
			err = readTerms(content, s.df)
		}
		if err != nil {
			return err
		}
	}
	s.dead = map[int64]struct{}{}
	for _, b := range s.record.Dead {
		content, err := c.readBlob(ctx, kindDead, b)
		if err == nil {
			err = readDead(content, s.dead)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
