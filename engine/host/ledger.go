package host

import (
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// ErrRestarted says that a process ended with changes that were not committed,
// or a fit that was not finished, and that they are lost. A store's caller
// opens the collection again and repeats all changes since the last commit; a
// fit is begun again with a new process.
var ErrRestarted = errors.New("the stage's process was restarted and what was not committed is lost")

// ledger knows what a process has been told and would forget if it ended.
type ledger struct {
	mu    sync.Mutex
	open  map[string]*stagepb.Open
	noted map[string]bool // open collections whose last commit has a note
	dirty map[change]bool // not committed
	lost  map[change]bool // the process that knew it has ended
}

// change is a collection, or the fit of an embedder.
type change struct {
	fit        bool
	collection string
}

func newLedger() *ledger {
	return &ledger{open: map[string]*stagepb.Open{}, noted: map[string]bool{}, dirty: map[change]bool{}, lost: map[change]bool{}}
}

// before notes a request that is about to be sent, or refuses one that builds
// on what is lost.
func (l *ledger) before(req *stagepb.Request) error {
	c, changes := changeOf(req)
	if !changes {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[c] {
		return ErrRestarted
	}
	l.dirty[c] = true
	return nil
}

// after notes a request that has succeeded.
func (l *ledger) after(req *stagepb.Request, reply *stagepb.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch body := req.GetBody().(type) {
	case *stagepb.Request_Open:
		c := change{collection: body.Open.GetCollection()}
		l.open[c.collection] = body.Open
		l.noted[c.collection] = len(reply.GetCollection().GetNote()) > 0
		delete(l.lost, c)
		delete(l.dirty, c)
	case *stagepb.Request_Commit:
		c := change{collection: body.Commit.GetCollection()}
		delete(l.dirty, c)
		l.noted[c.collection] = len(body.Commit.GetNote()) > 0
	case *stagepb.Request_Drop:
		c := change{collection: body.Drop.GetCollection()}
		delete(l.dirty, c)
		delete(l.lost, c)
		delete(l.open, c.collection)
	case *stagepb.Request_State:
		delete(l.dirty, change{fit: true})
	}
}

// restarted notes that the process has ended and returns the collections that
// the next one has to open.
func (l *ledger) restarted() []*stagepb.Open {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.dirty {
		l.lost[c] = true
	}
	clear(l.dirty)
	var open []*stagepb.Open
	for _, o := range l.open {
		open = append(open, o)
	}
	return open
}

// gone reports that a collection is not what it was when the process before
// opened it: its note is not there any more, so somebody has removed it.
func (l *ledger) gone(open *stagepb.Open, now *stagepb.Collection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[open.GetCollection()] && len(now.GetNote()) == 0
}

// changeOf says what a request changes that an end of the process undoes.
func changeOf(req *stagepb.Request) (change, bool) {
	switch body := req.GetBody().(type) {
	case *stagepb.Request_Put:
		return change{collection: body.Put.GetCollection()}, true
	case *stagepb.Request_Delete:
		return change{collection: body.Delete.GetCollection()}, true
	case *stagepb.Request_Commit:
		return change{collection: body.Commit.GetCollection()}, true
	case *stagepb.Request_Fit, *stagepb.Request_State:
		return change{fit: true}, true
	}
	return change{}, false
}
