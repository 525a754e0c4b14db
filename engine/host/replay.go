package host

import (
	"cmp"
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// ErrRestarted says that a process ended with changes that were not committed,
// or while it was fitted, and that they are lost. A store's caller opens the collection
// again and repeats all changes since the last commit; a fit is begun again.
var ErrRestarted = errors.New("the stage's process was restarted and what was not committed is lost")

// replayLog knows what a process has been told and would forget if it ended: the
// collections of a store.
type replayLog struct {
	mu       sync.Mutex
	attached string // ID of the collection that somebody else makes; empty: none is attached
	open     map[string]*stagepb.OpenCollectionRequest
	noted    map[string]bool // open collections whose last commit has a note
	dirty    map[string]bool // collections with changes that are not committed
	lost     map[string]bool // the process that knew the changes has ended
}

func newReplayLog() *replayLog {
	return &replayLog{open: map[string]*stagepb.OpenCollectionRequest{}, noted: map[string]bool{}, dirty: map[string]bool{}, lost: map[string]bool{}}
}

// before notes a request that is about to be sent, or refuses one that builds
// on what is lost.
func (l *replayLog) before(request any) error {
	collection, changes := changeOf(request)
	if !changes {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[collection] {
		return ErrRestarted
	}
	l.dirty[collection] = true
	return nil
}

// after notes a request that has succeeded.
func (l *replayLog) after(request, reply any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req := request.(type) {
	case *stagepb.AttachRequest:
		l.attached = cmp.Or(l.attached, reply.(*stagepb.AttachReply).GetAttached().GetId()) // a later call only looks for changes
	case *stagepb.OpenCollectionRequest:
		c := req.GetCollection()
		l.open[c] = req
		l.noted[c] = len(reply.(*stagepb.OpenCollectionReply).GetCollection().GetNote()) > 0
		delete(l.lost, c)
		delete(l.dirty, c)
	case *stagepb.CommitRequest:
		delete(l.dirty, req.GetCollection())
		l.noted[req.GetCollection()] = len(req.GetNote()) > 0
	case *stagepb.DropRequest:
		delete(l.dirty, req.GetCollection())
		delete(l.lost, req.GetCollection())
		delete(l.open, req.GetCollection())
	}
}

// restarted notes that the process has ended and returns the collections that
// the next one has to open.
func (l *replayLog) restarted() []*stagepb.OpenCollectionRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.dirty {
		l.lost[c] = true
	}
	clear(l.dirty)
	var open []*stagepb.OpenCollectionRequest
	for _, o := range l.open {
		open = append(open, o)
	}
	return open
}

// gone reports that a collection is not what it was when the process before
// opened it: its note is not there any more, so somebody has removed it.
func (l *replayLog) gone(open *stagepb.OpenCollectionRequest, now *stagepb.Collection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[open.GetCollection()] && len(now.GetNote()) == 0
}

// attachment is the ID of the attached collection, which the next process has to attach.
func (l *replayLog) attachment() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attached
}

// changeOf says which collection a request changes in a way that an end of the process undoes.
func changeOf(request any) (collection string, changes bool) {
	switch req := request.(type) {
	case *stagepb.PutRequest:
		return req.GetCollection(), true
	case *stagepb.DeleteRequest:
		return req.GetCollection(), true
	case *stagepb.CommitRequest:
		return req.GetCollection(), true
	}
	return "", false
}
