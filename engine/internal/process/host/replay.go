package host

import (
	"cmp"
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// errRestarted says that a process ended with uncommitted changes, or during a fit, and that these
// are lost. The caller of a store opens the collection again and repeats all changes since the last
// commit; the caller of a fit starts it again.
var errRestarted = errors.New("the stage's process was restarted and what was not committed is lost")

// replayLog records the state that a process would lose if it ended: the open collections of a
// store.
type replayLog struct {
	mu       sync.Mutex
	attached string // ID of the attached collection of another program; empty: none
	open     map[string]*stagepb.OpenCollectionRequest
	noted    map[string]bool // open collections whose last commit has a note
	dirty    map[string]bool // collections with uncommitted changes
	lost     map[string]bool // collections whose uncommitted changes ended with their process
}

func newReplayLog() *replayLog {
	return &replayLog{open: map[string]*stagepb.OpenCollectionRequest{}, noted: map[string]bool{}, dirty: map[string]bool{}, lost: map[string]bool{}}
}

// before records a request that is about to be sent, or refuses one that depends on lost changes.
func (l *replayLog) before(request any) error {
	collection, changes := changeOf(request)
	if !changes {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[collection] {
		return errRestarted
	}
	l.dirty[collection] = true
	return nil
}

// after records a request that has succeeded.
func (l *replayLog) after(request, reply any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req := request.(type) {
	case *stagepb.AttachRequest:
		l.attached = cmp.Or(l.attached, reply.(*stagepb.AttachReply).GetAttached().GetId()) // later calls only look for changes
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

// restarted records that the process has ended and returns the collections that the next process
// has to open.
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

// gone reports whether somebody has removed a collection since the previous process opened it: its
// note is missing.
func (l *replayLog) gone(open *stagepb.OpenCollectionRequest, now *stagepb.Collection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[open.GetCollection()] && len(now.GetNote()) == 0
}

// attachment returns the ID of the attached collection, which the next process has to attach.
func (l *replayLog) attachment() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attached
}

// changeOf returns the collection that a request changes, and reports whether the end of the process
// would undo the change.
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
