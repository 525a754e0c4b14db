package status

import (
	"time"

	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/lease"
)

// States of a run.
const (
	Working  = "working"  // workers answer its items
	Waiting  = "waiting"  // nobody answers anything: State.Why says what it waits for
	Detached = "detached" // workers answer its items, and nobody takes what they answer yet
	Answered = "answered" // every item is answered, and no caller has taken all answers yet
	Ended    = "ended"
)

// Status is how a run is.
type Status struct {
	Run      string    `json:"run"`
	State    string    `json:"state"`
	Why      string    `json:"why,omitempty"` // nobody works, or what keeps the run from going on; a sentence
	Started  time.Time `json:"started"`
	Version  string    `json:"racflow"` // of its caller
	File     string    `json:"file"`    // on the machine of its caller, as the rest
	Pipeline string    `json:"pipeline"`
	Input    string    `json:"input"`
	Journal  string    `json:"journal,omitempty"` // the run's ID in the caller's state folder; empty: it keeps none

	Items   Items    `json:"items"`
	Batches Batches  `json:"batches"`
	Caller  *Caller  `json:"caller,omitempty"` // nil: none has said anything
	Keeper  *Keeper  `json:"keeper,omitempty"` // who hands out leases; nil: nobody does
	Workers []Worker `json:"workers"`          // by name

	Failed int64   `json:"failed"` // items that workers answered with a failure
	Cost   float64 `json:"cost"`   // of workers' calls, by the prices in the file
	Tokens uint64  `json:"tokens"` // in and out
}

// Items are those of the input.
type Items struct {
	Answered int64   `json:"answered"`        // by workers, about: batches are counted
	Total    int64   `json:"total,omitempty"` // 0: not known yet
	Rate     float64 `json:"rate"`            // answered per second now, by all workers
	Left     float64 `json:"left,omitempty"`  // seconds, at this rate; 0: nobody knows
}

// Batches are those of the part that the caller published last.
type Batches struct {
	Published int64      `json:"published"`
	Answered  int64      `json:"answered"`
	Done      int64      `json:"done"`  // their results are with the caller
	Total     int64      `json:"total"` // 0: not known yet
	Waiting   int        `json:"waiting"`
	UnderWay  int        `json:"under_way"`
	Oldest    *time.Time `json:"oldest,omitempty"` // when the first of those that wait or are under way was published; nil: there are none
	Age       float64    `json:"age,omitempty"`    // of it, in seconds
}

// Caller is the process that has the run's input and output.
type Caller struct {
	Name     string    `json:"name"`
	Host     string    `json:"host"`
	Part     int       `json:"part"` // 2 and more: the run was resumed
	Seen     time.Time `json:"seen"`
	Gone     bool      `json:"gone,omitempty"` // it has said nothing for long
	Detached bool      `json:"detached,omitempty"`
	Attached string    `json:"attached,omitempty"` // who came back last to the run that it detached; empty: nobody yet
}

// Worker is a process that takes part, or cannot.
type Worker struct {
	definition.Worker
	Seen time.Time `json:"seen"`
	Gone bool      `json:"gone,omitempty"` // it has said nothing for long: its batches go to others
}

// Keeper is who hands out the leases of limits and budget.
type Keeper struct {
	Name    string        `json:"name"` // empty: nobody, another takes over
	Seen    time.Time     `json:"seen"`
	Gone    bool          `json:"gone,omitempty"`   // it has said nothing for long: another takes over
	Holders int           `json:"holders"`          // workers that have leases
	Leased  lease.Amount  `json:"leased,omitzero"`  // of the budget: what workers have spent or may spend
	Budget  lease.Amount  `json:"budget,omitzero"`  // 0: any
	Spent   string        `json:"spent,omitempty"`  // why nothing is leased any more
	Blocks  []lease.Limit `json:"blocks,omitempty"` // limits of the file that calls keep to together
}
