package caller

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/spend"
)

// This file defines the stored data that the processes of a run on many machines share: the
// definition of the run, and the small state of its caller and workers.
//
// The caller writes the definition once, when the run begins. Workers open the same pipeline from
// it, and a process that attaches later writes the output by it. It contains neither secrets nor
// the input nor the sources of the knowledge.
//
// Keys in the state bucket of the run:
//
//	caller        SeenCaller, put by the caller as it works
//	worker.NAME   WorkerState, put by each worker every WorkerEvery; the last one stays
//	attached      the name of who attached to the run last
//	end           the run is over: workers leave
//
// This file only defines the values; other files here and package worker read and write them at the servers.

// DefinitionFormat is the current format of definitions.
const DefinitionFormat = 1

// Definition describes a run.
type Definition struct {
	Format  int       `json:"format"`
	Run     string    `json:"run"`    // the run's ID
	Caller  string    `json:"caller"` // the process that began the run, for people
	Version string    `json:"racflow"`
	Started time.Time `json:"started"`

	Manifest journal.Manifest   `json:"manifest"` // with the ID of the caller's journal, if it keeps one
	Labels   []string           `json:"labels"`   // of the knowledge that is searched last
	Bundle   shipment.Bundle    `json:"bundle"`
	Files    []shipment.Shipped `json:"files"` // of the caller's state folder
	Limits   lease.Limits       `json:"limits"`

	Keep  journal.Keep  `json:"keep,omitempty"`  // the items whose details the journal stores
	Lists bool          `json:"lists,omitempty"` // what each search found has texts
	Spend spend.Limit   `json:"spend,omitzero"`  // what the run may spend on voters that call services: the caller decides for which items
	Mode  governor.Mode `json:"mode,omitempty"`  // how the response cache is used
}

// Encode returns the definition as it is stored at the servers.
func (d *Definition) Encode() ([]byte, error) { return json.Marshal(d) }

// DecodeDefinition decodes the output of Encode. It rejects definitions of a newer racflow.
func DecodeDefinition(data []byte) (*Definition, error) {
	var d Definition
	err := json.Unmarshal(data, &d)
	switch {
	case d.Format > DefinitionFormat:
		return nil, fmt.Errorf("a newer racflow (%s) began the run, in format %d; this one reads formats up to %d: install that version", d.Version, d.Format, DefinitionFormat)
	case err != nil:
		return nil, fmt.Errorf("the definition of the run cannot be read: %w", err)
	case d.Format < 1 || d.Run == "":
		return nil, errors.New("the definition of the run does not say its format and ID: something else than racflow wrote it")
	}
	return &d, nil
}

// idForm has no vowels, so that no ID is a word, and no characters that look alike.
var idForm = regexp.MustCompile(`^[bcdfghjkmnpqrstvwxz][2-9b-df-hj-kmnp-tv-xz]{5,15}$`)

// IsRunID reports whether a text could be the ID of a run at servers. Names of local runs
// (run-000001) cannot.
func IsRunID(text string) bool { return idForm.MatchString(text) }

// NewRunID returns a random ID, one of 10^11: with a million runs at the same servers, a new one collides with a
// probability of less than 1:100,000.
func NewRunID() string {
	for {
		if id := strings.ToLower(rand.Text()[:8]); idForm.MatchString(id) {
			return id
		}
	}
}

// Keys of a run's state.
const (
	CallerKey    = "caller"   // value: SeenCaller
	WorkerPrefix = "worker."  // followed by the name of a worker; value: WorkerState
	AttachedKey  = "attached" // value: the name of the process that attached last, a JSON text
	EndKey       = "end"      // present: the run is over, and workers leave
)

// WorkerEvery is how often a worker stores its state. A worker that has not done so for WorkerGone
// counts as gone.
const (
	WorkerEvery = 2 * time.Second
	WorkerGone  = 15 * time.Second
)

// States of a worker.
const (
	Joining  = "joining" // it opens the pipeline
	Working  = "working"
	Lacks    = "lacks"    // it cannot take part: WorkerState.Lacks says why
	Draining = "draining" // it finishes its batches, then leaves
	Left     = "left"     // its counts stay
)

// WorkerState describes a process that takes part in a run, or cannot.
type WorkerState struct {
	Name  string    `json:"name"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	State string    `json:"state"`
	Jobs  int       `json:"jobs,omitempty"`  // batches that it works on at the same time; 0: unknown
	Lacks []string  `json:"lacks,omitempty"` // sentences that say what to do on Host
	// Its answers so far.
	Batches int64   `json:"batches"`
	Items   int64   `json:"items"`
	Failed  int64   `json:"failed"` // out of Items
	Rate    float64 `json:"rate"`   // recent items per second
	Cost    float64 `json:"cost"`   // by the prices in the file
	Tokens  uint64  `json:"tokens"` // input plus output
	// Calls counts its calls of services, for the report of the run.
	Calls governor.Snapshot `json:"calls,omitzero"`
}

// SeenCaller is the progress of the caller.
type SeenCaller struct {
	Name      string    `json:"name"`
	Host      string    `json:"host"`
	At        time.Time `json:"at"`
	Published int64     `json:"published"` // batches
	Done      int64     `json:"done"`      // published batches whose results the caller has
	Total     int64     `json:"total"`     // batches; 0: not all are published yet
	Items     int64     `json:"items"`     // in the batches of Total; 0: unknown yet
	// Detached: everything is published and the caller has left, so any process may attach.
	Detached bool `json:"detached,omitempty"`
}

// part is that of all positions of a run.
const part = 1
