package milvus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file is what a reader knows of the last commit: which one it is, by the turns of
// writers (snapshot_turn.go), its record, which says up to which sequence number rows
// count, and the state: the note, the statistics of the words and the dead rows. It reads
// them from system rows of the table, and a View looks for a newer commit every two
// seconds. It writes nothing.

// ReadSnapshot reads the last commit; that of old, the snapshot before or nil, is not
// read again. It begins anew where a newer commit came in between.
func ReadSnapshot(ctx context.Context, t *table.Table, old *Snapshot) (*Snapshot, error) {
	pauses := support.Backoff{First: 200 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		s, err := readSnapshot(ctx, t, old)
		if err == nil || attempt == 5 || sdk.CodeOf(err) != sdk.CodeTransient {
			return s, err
		}
		if err := support.SleepFor(ctx, pauses.Delay(attempt)); err != nil {
			return nil, err
		}
	}
}

func readSnapshot(ctx context.Context, t *table.Table, old *Snapshot) (*Snapshot, error) {
	began := time.Now() // the reply may take its time
	turns, err := ReadTurns(ctx, t)
	if err != nil {
		return nil, err
	}
	s := EmptySnapshot(t, true)
	if s.Record, err = turns.Last(); err != nil {
		return nil, err
	}
	s.Seen = began
	if old != nil && old.Record.Same(&s.Record) {
		s.State = old.State
		return s, nil
	}
	return s, s.readState(ctx)
}

// Record is what a commit leaves behind: the one row that is the commit.
type Record struct {
	Commit int64 `json:"commit"` // number of its turn
	// Holder is the random name of who made it. In a collection that was dropped and made again the
	// same numbers may mean other rows.
	Holder string `json:"holder"`
	Next   int64  `json:"next"` // sequence number; no row counts from here on
	// Gaps are the sequence numbers below Next of turns that did not commit.
	Gaps    []Gap   `json:"gaps,omitempty"`
	Entries int     `json:"entries"`
	Words   int64   `json:"words"`  // of all entries together
	Lowest  float64 `json:"lowest"` // of the average lengths that the words of the rows are weighed with

	Parts int   `json:"parts"` // system rows that the state takes
	Time  int64 `json:"time"`  // until when the record may have been sent, in seconds since 1970, by the writer's clock
}

// Gap are the sequence numbers from From on and below To.
type Gap struct{ From, To int64 }

// Same reports that two records are of the same commit.
func (r *Record) Same(other *Record) bool {
	return r.Commit == other.Commit && r.Holder == other.Holder
}

// Average is the average length of a text in words; 1 where there are none.
func (r *Record) Average() float64 {
	if r.Entries == 0 || r.Words == 0 {
		return 1
	}
	return float64(r.Words) / float64(r.Entries)
}

// Keys are the keys of the system rows that the commit consists of.
func (r *Record) Keys() map[string]bool {
	used := map[string]bool{TurnKey(r.Commit, "record"): true}
	for _, key := range stateKeys(r.Commit, r.Parts) {
		used[key] = true
	}
	return used
}

// Snapshot is what is known of the last commit. It is never changed, once it is the last.
type Snapshot struct {
	*table.Table
	State
	Record   Record
	OnServer bool      // else the table is yet to be created
	Seen     time.Time // when it was the last for certain
}

// EmptySnapshot is a snapshot of a table without entries.
func EmptySnapshot(t *table.Table, onServer bool) *Snapshot {
	return &Snapshot{Table: t, State: State{Frequencies: map[uint32]uint32{}, Dead: map[int64]bool{}}, OnServer: onServer, Seen: time.Now()}
}

// Expression selects the rows up to the commit, dead ones included.
func (s *Snapshot) Expression() string {
	expr := table.Between(0, s.Record.Next)
	for _, g := range s.Record.Gaps {
		expr = table.And(expr, table.Outside(g.From, g.To))
	}
	return expr
}

// Contains reports whether a row is up to the commit, dead or not.
func (s *Snapshot) Contains(sequence int64) bool {
	r := &s.Record
	return sequence < r.Next &&
		!slices.ContainsFunc(r.Gaps, func(g Gap) bool { return g.From <= sequence && sequence < g.To })
}

const (
	// fresh is how long a reader relies on what it knows of the last commit.
	fresh = 2 * time.Second
	// Grace is how long a reader that does not know of a newer commit may need the rows
	// that died with it, and how long a call may be on its way. A read that took half of
	// it checks whether it was fast enough.
	Grace = 2 * time.Minute
)

// View is what this process knows of a collection. It is safe for concurrent use.
type View struct {
	Collection string

	looking sync.Mutex // held by the reader that looks for a newer commit
	latest  atomic.Pointer[Snapshot]
}

// Latest is the last commit that this process knows of; nil: the collection is
// not open.
func (v *View) Latest() *Snapshot { return v.latest.Load() }

// Set replaces what is known; nil closes the collection.
func (v *View) Set(s *Snapshot) { v.latest.Store(s) }

// Opened is Latest, with an error where the collection is not open.
func (v *View) Opened() (*Snapshot, error) {
	if s := v.Latest(); s != nil {
		return s, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not open", v.Collection))
}

// current is the last commit, as far as a reader has to know.
func (v *View) current(ctx context.Context) (*Snapshot, error) {
	isCurrent := func(s *Snapshot) bool { return time.Since(s.Seen) < fresh || !s.OnServer }
	s, err := v.Opened()
	if err != nil || isCurrent(s) {
		return s, err
	}
	v.looking.Lock()
	defer v.looking.Unlock()
	if s, err = v.Opened(); err != nil || isCurrent(s) {
		return s, err
	}
	newer, err := ReadSnapshot(ctx, s.Table, s)
	if err != nil {
		return nil, err
	}
	v.latest.CompareAndSwap(s, newer) // else this process has committed, opened or dropped it meanwhile
	return v.Opened()
}

// Read calls do with the last commit, and calls it again where do took so long
// that rows of the commit may have been removed meanwhile.
func (v *View) Read(ctx context.Context, do func(*Snapshot) error) error {
	for {
		s, err := v.current(ctx)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
		if time.Since(s.Seen) < Grace/2 || !s.OnServer {
			return nil
		}
		newer, err := v.current(ctx)
		if err != nil || newer.Record.Same(&s.Record) {
			return err
		}
	}
}
