package generation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Note is what a store keeps of a generation with each commit of its entries.
type Note struct {
	Source     string `json:"source"`               // digest of the source
	Complete   bool   `json:"complete"`             // false: a first build is under way
	State      []byte `json:"state,omitempty"`      // of a fitted embedder
	Fitted     int    `json:"fitted,omitempty"`     // rows it was fitted to
	Invalid    int    `json:"invalid,omitempty"`    // rows that could not be used
	Unenriched int    `json:"unenriched,omitempty"` // passages of which an addition is missing
	Documents  int    `json:"documents,omitempty"`
	// Holders are those who serve an edition, with when they last said so.
	Holders map[string]time.Time `json:"holders,omitempty"`
	Origin
}

// ReadNote reads a note, and reports whether this engine wrote it.
func ReadNote(text []byte) (Note, bool) {
	var n Note
	var must struct {
		Source   *string `json:"source"`
		Complete *bool   `json:"complete"`
	}
	if json.Unmarshal(text, &must) != nil || must.Source == nil || must.Complete == nil {
		return n, false
	}
	return n, json.Unmarshal(text, &n) == nil
}

// Describe notes what a build makes entries from; the times are those of commits.
func (n *Note) Describe(o Origin) {
	o.Built, o.Changed = n.Built, n.Changed
	n.Origin = o
}

// Content is the hash of what the entries were made from: the source, and what a
// fitted embedder had learnt.
func (n Note) Content() string {
	h := sha256.New()
	h.Write([]byte(n.Source))
	h.Write(n.State)
	if n.Unenriched > 0 {
		fmt.Fprintf(h, "%d without an addition", n.Unenriched)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Now is a time as notes keep it.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
