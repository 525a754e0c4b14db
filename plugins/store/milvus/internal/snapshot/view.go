package snapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
)

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
	mu      sync.RWMutex
	latest  *Snapshot
}

// Latest is the last commit that this process knows of; nil: the collection is
// not open.
func (v *View) Latest() *Snapshot {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.latest
}

// Set replaces what is known; nil closes the collection.
func (v *View) Set(s *Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.latest = s
}

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
	newer, err := Read(ctx, s.Table, s)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	if v.latest == s { // else this process has committed, opened or dropped it meanwhile
		v.latest = newer
	}
	v.mu.Unlock()
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
