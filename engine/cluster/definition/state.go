package definition

import (
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// Keys of a run's state.
const (
	CallerKey    = "caller"   // CallerState
	WorkerPrefix = "worker."  // with the name of a worker behind it: Worker
	AttachedKey  = "attached" // the name of who attached to the run last, a JSON text
	EndKey       = "end"      // present: the run is over, and workers leave
)

// WorkerEvery is how often a worker puts its state. Who has not put it for WorkerGone is not there
// any more.
const (
	WorkerEvery = 2 * time.Second
	WorkerGone  = 15 * time.Second
)

// States of a worker.
const (
	Joining  = "joining" // it opens the pipeline
	Working  = "working"
	Lacks    = "lacks"    // it takes no part: Worker.Lacks says why
	Draining = "draining" // it answers what it has, and leaves
)

// Worker is a process that takes part in a run, or cannot.
type Worker struct {
	Name  string    `json:"name"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	State string    `json:"state"`
	Jobs  int       `json:"jobs,omitempty"`  // batches that it works on at a time; 0: not known
	Lacks []string  `json:"lacks,omitempty"` // sentences that say what to do on Host
	// What it has answered so far.
	Batches int64   `json:"batches"`
	Items   int64   `json:"items"`
	Failed  int64   `json:"failed"` // of Items
	Rate    float64 `json:"rate"`   // items per second, of late
	Cost    float64 `json:"cost"`   // by the prices in the file
	Tokens  uint64  `json:"tokens"` // in and out
	// Calls are its calls of services, for the report of the run.
	Calls governor.Snapshot `json:"calls,omitzero"`
}

// CallerState is how far the caller is.
type CallerState struct {
	Name      string    `json:"name"`
	Host      string    `json:"host"`
	At        time.Time `json:"at"`
	Part      int       `json:"part"`      // that it publishes: 1, or more of a run that was resumed
	Published int64     `json:"published"` // batches of this part
	Done      int64     `json:"done"`      // of them: their results are known to it
	Total     int64     `json:"total"`     // batches of this part; 0: it goes on publishing
	Items     int64     `json:"items"`     // in the batches of Total; 0: not known yet
	// Detached: it has left, and everything is published: anyone may attach.
	Detached bool `json:"detached,omitempty"`
	// Known is how many results of a detached run the caller has put at the servers itself, of items
	// that nobody has to be asked about: at the positions of the part behind KnownSeq.
	Known int64 `json:"known,omitempty"`
}

// KnownSeq is above the numbers of batches: results whose number is above it are the caller's own, of
// which the first is KnownSeq+1.
const KnownSeq = 1 << 40
