package caller

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/spend"
)

// This file has what the parts of a run on many machines tell each other in words that
// outlive them: what the run is, and the small state of who takes part in it.
//
// The definition is written once, by the caller, when the run begins. Workers read it and open the
// same pipeline by it; whoever attaches to the run later writes its output by it. It has no
// secrets, and neither the input nor the sources of the knowledge.
//
// Keys name values in the state bucket of the run:
//
//	caller        SeenCaller, put by the caller as it works
//	worker.NAME   Worker, put by each worker every WorkerEvery
//	attached      the name of who attached to the run last
//	end           the run is over: workers leave
//
// It holds values, and neither reads nor writes them at the servers: packages caller and worker do.

// DefinitionFormat is that of definitions which are written now.
const DefinitionFormat = 1

// Definition is what a run is.
type Definition struct {
	Format  int       `json:"format"`
	Run     string    `json:"run"`    // its ID
	Caller  string    `json:"caller"` // the process that began it, for people
	Version string    `json:"racflow"`
	Started time.Time `json:"started"`

	Manifest journal.Manifest   `json:"manifest"` // with the ID of the caller's journal, if it keeps one
	Labels   []string           `json:"labels"`   // of the knowledge that is searched last
	Bundle   shipment.Bundle    `json:"bundle"`
	Files    []shipment.Shipped `json:"files"` // of the caller's state folder
	Limits   lease.Limits       `json:"limits"`

	Keep  journal.Keep  `json:"keep,omitempty"`  // of which items the journal has what was seen
	Lists bool          `json:"lists,omitempty"` // what each search found has texts
	Spend spend.Limit   `json:"spend,omitzero"`  // what may be spent where it counts: the caller decides for which items
	Mode  governor.Mode `json:"mode,omitempty"`  // how the cache of answers is used
}

// Encode returns the definition as the servers keep it.
func (d *Definition) Encode() ([]byte, error) { return json.Marshal(d) }

// DecodeDefinition reads what Encode has written. It refuses what a newer racflow wrote.
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

// Digest names the definition, but for when it began and who began it: machines whose digests of a
// run differ do not work together. SHA-256, hexadecimal.
func (d Definition) Digest() (string, error) {
	d.Caller, d.Started = "", time.Time{}
	d.Manifest.ID, d.Manifest.Started, d.Manifest.Output, d.Manifest.Command = "", time.Time{}, "", nil
	d.Manifest.Cluster = nil // of the caller's machine, as those
	d.Limits.Spent = lease.Amount{}
	text, err := d.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// letters of IDs have no vowels, so that no ID is a word, and nothing that is read as something
// else.
const letters = "23456789bcdfghjkmnpqrstvwxz"

// idLength makes 27^8 = 2.8e11 IDs: two of a million runs at the same servers are alike with a chance of
// less than 1:100,000 for each new one.
const idLength = 8

var idForm = regexp.MustCompile(`^[bcdfghjkmnpqrstvwxz][2-9b-df-hj-kmnp-tv-xz]{5,15}$`)

// IsRunID reports whether a text could be the ID of a run at servers. The names of local runs
// (run-000001) cannot.
func IsRunID(text string) bool { return idForm.MatchString(text) }

// NewRunID returns a random ID.
func NewRunID() string {
	id := make([]byte, 0, idLength)
	for random := [1]byte{}; len(id) < idLength; {
		_, _ = rand.Read(random[:]) // it never fails
		at := int(random[0])
		switch {
		case at >= 256/len(letters)*len(letters): // else some letters would come more often
		case len(id) == 0 && at%len(letters) < 8: // a digit
		default:
			id = append(id, letters[at%len(letters)])
		}
	}
	return string(id)
}

// Keys of a run's state.
const (
	CallerKey    = "caller"   // SeenCaller
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

// WorkerState is a process that takes part in a run, or cannot.
type WorkerState struct {
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

// SeenCaller is how far the caller is.
type SeenCaller struct {
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
