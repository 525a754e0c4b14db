package knowledge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
)

// note is what the engine keeps with a commit of the main collection.
type note struct {
	Source     string `json:"source"`           // digest of the source
	Complete   bool   `json:"complete"`         // false: a first build is under way
	State      []byte `json:"state,omitempty"`  // of a fitted embedder
	Fitted     int    `json:"fitted,omitempty"` // rows it was fitted to
	Invalid    int    `json:"faults,omitempty"` // rows that could not be used
	Unenriched int    `json:"bare,omitempty"`   // passages of which an addition is missing
	// Documents is how many the entries were made of; 0: they were rows.
	Documents int `json:"documents,omitempty"`
	Origin
}

// Origin says what a person recognises a generation by: what it was made from,
// and when. What an older version of racflow did not record is empty.
type Origin struct {
	// Definition is the digest of the block, as far as entries depend on it: what
	// differs between two generations beside it is a plugin, a model or a template.
	Definition string `json:"definition,omitempty"`

	File     string          `json:"file,omitempty"`     // pipeline file that built or changed it last, absolute
	Path     string          `json:"path,omitempty"`     // of the source, absolute, or "-"
	Embedder string          `json:"embedder,omitempty"` // use of the embed stage
	Config   json.RawMessage `json:"config,omitempty"`   // of the embedder, secrets left out
	Chunker  string          `json:"chunker,omitempty"`  // use of the chunk stage; empty: there is none
	Cut      json.RawMessage `json:"cut,omitempty"`      // config of the chunker
	Enrich   []Enrichment    `json:"enrich,omitempty"`   // in the order of their blocks
	Analyzer string          `json:"analyzer,omitempty"` // of the lexical side
	// The plugins of an embedder and a chunker of third parties; nil: built-in ones.
	EmbedderPlugin *Plugin `json:"embedder_plugin,omitempty"`
	ChunkerPlugin  *Plugin `json:"chunker_plugin,omitempty"`

	Built   time.Time `json:"built,omitzero"`   // when it was complete for the first time
	Changed time.Time `json:"changed,omitzero"` // when it was committed last
}

// Enrichment is an enrich block that was enabled.
type Enrichment struct {
	Name     string          `json:"name"`
	Use      string          `json:"use"`
	Config   json.RawMessage `json:"config,omitempty"` // secrets left out
	Embedded bool            `json:"embedded"`
	Lexical  bool            `json:"lexical"`
	Plugin   *Plugin         `json:"plugin,omitempty"` // of a third party's enricher
}

// enrichments are the enabled enrich blocks of a knowledge.
func enrichments(block *pipeline.Knowledge) []Enrichment {
	var all []Enrichment
	for _, s := range block.Enrichers() {
		all = append(all, Enrichment{Name: s.Name, Use: s.Use, Config: s.Config.Public, Embedded: s.Embedded, Lexical: s.Lexical})
	}
	return all
}

// describe notes what this build makes entries from; the times are those of commits.
func (b *builder) describe() {
	made := b.origin
	made.Built, made.Changed = b.note.Built, b.note.Changed
	b.note.Origin = made
}

// fileOf returns the file that a block stands in; empty if it is not known.
func fileOf(block *pipeline.Knowledge) string {
	if block.Range.Filename == "" {
		return ""
	}
	path, err := filepath.Abs(block.Range.Filename)
	if err != nil {
		return block.Range.Filename
	}
	return path
}

// now is a time as notes keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// readNote reads a note, and tells whether this engine wrote it.
func readNote(text []byte) (note, bool) {
	var n note
	var must struct {
		Source   *string `json:"source"`
		Complete *bool   `json:"complete"`
	}
	if json.Unmarshal(text, &must) != nil || must.Source == nil || must.Complete == nil {
		return n, false
	}
	return n, json.Unmarshal(text, &n) == nil
}

// content is the hash of what the entries were made from: the source, and what
// a fitted embedder had learnt.
func (b *builder) content() string {
	h := sha256.New()
	h.Write([]byte(b.note.Source))
	h.Write(b.note.State)
	if b.note.Unenriched > 0 {
		fmt.Fprintf(h, "%d without an addition", b.note.Unenriched)
	}
	return hex.EncodeToString(h.Sum(nil))
}
