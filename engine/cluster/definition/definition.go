package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/cluster/bundle"
	"github.com/racflow/racflow/engine/cluster/lease"
	"github.com/racflow/racflow/engine/cluster/ship"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/spend"
)

// Format is that of definitions which are written now.
const Format = 1

// Definition is what a run is.
type Definition struct {
	Format  int       `json:"format"`
	Run     string    `json:"run"`    // its ID
	Caller  string    `json:"caller"` // the process that began it, for people
	Version string    `json:"racflow"`
	Started time.Time `json:"started"`

	Manifest manifest.Manifest `json:"manifest"` // with the ID of the caller's journal, if it keeps one
	Labels   []string          `json:"labels"`   // of the knowledge that is searched last
	Bundle   bundle.Bundle     `json:"bundle"`
	Files    []ship.Shipped    `json:"files"` // of the caller's state folder
	Limits   lease.Limits      `json:"limits"`

	Keep  journal.Keep  `json:"keep,omitempty"`  // of which items the journal has what was seen
	Lists bool          `json:"lists,omitempty"` // what each search found has texts
	Spend spend.Limit   `json:"spend,omitzero"`  // what may be spent where it counts: the caller decides for which items
	Mode  governor.Mode `json:"mode,omitempty"`  // how the cache of answers is used
}

// Encode returns the definition as the servers keep it.
func (d *Definition) Encode() ([]byte, error) { return json.Marshal(d) }

// Decode reads what Encode has written. It refuses what a newer racflow wrote.
func Decode(data []byte) (*Definition, error) {
	var d Definition
	err := json.Unmarshal(data, &d)
	switch {
	case d.Format > Format:
		return nil, fmt.Errorf("a newer racflow (%s) began the run, in format %d; this one reads formats up to %d: install that version", d.Version, d.Format, Format)
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
