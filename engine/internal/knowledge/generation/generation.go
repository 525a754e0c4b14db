package generation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source/document"
)

// layout is part of every fingerprint. Raise it when entries, notes or centroids change in form, or
// package pipeline computes another digest of the same block.
const layout = 4

// hashLength is the number of hexadecimal digits in a collection's name.
const hashLength = 12

// Name names the collection of a generation after everything that its content depends on (package
// pipeline), except the rows themselves. Another source file gives another name: runs over two files
// must not remove each other's rows. The stages must not have learned yet: learning changes their
// fingerprint.
func Name(block *pipeline.Knowledge, s Stages) string {
	parts := []any{layout, pipeline.KnowledgeDigest(block), pipeline.OutputDigest(s.Embedder), s.Embedder.Dimension()}
	if block.Documents() != nil {
		parts = append(parts, document.Version)
	}
	if s.Chunker != nil {
		parts = append(parts, pipeline.OutputDigest(s.Chunker))
	}
	for _, e := range s.Enrichers {
		parts = append(parts, pipeline.OutputDigest(e))
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // cannot happen: strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return block.Name + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Centroids names the collection of the label centroids for a collection of entries.
func Centroids(collection string) string { return collection + "-labels" }

// isName reports whether Name may have given a knowledge's collection this name.
func isName(collection, knowledge string) bool {
	hash, ok := strings.CutPrefix(collection, knowledge+"-")
	raw, err := hex.DecodeString(hash)
	return ok && err == nil && len(hash) == hashLength && hex.EncodeToString(raw) == hash
}

// Note is stored with each commit of a generation's entries.
type Note struct {
	Source     string `json:"source"`               // digest of the source
	Complete   bool   `json:"complete"`             // false: its first build has not ended
	State      []byte `json:"state,omitempty"`      // of a fitted embedder
	Fitted     int    `json:"fitted,omitempty"`     // number of rows that it was fitted to
	Invalid    int    `json:"invalid,omitempty"`    // number of unusable rows
	Unenriched int    `json:"unenriched,omitempty"` // number of passages without an addition
	Documents  int    `json:"documents,omitempty"`
	// Unread is what was not read of documents, by their ids.
	Unread map[string]document.Unread `json:"unread,omitempty"`
	// Holders are the processes that serve an edition, with the time of their last Hold.
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

// Describe sets the origin of a build's entries, but keeps the times of commits.
func (n *Note) Describe(o Origin) {
	o.Built, o.Changed = n.Built, n.Changed
	n.Origin = o
}

// Content is the hash of what the entries were made from: the source, and the state of a fitted
// embedder.
func (n Note) Content() string {
	h := sha256.New()
	h.Write([]byte(n.Source))
	h.Write(n.State)
	if n.Unenriched > 0 {
		fmt.Fprintf(h, "%d without an addition", n.Unenriched)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Now returns the time with the precision of notes.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Origin helps people to recognise a generation: its inputs, and its time. Fields that an older
// version of racflow did not record are empty.
type Origin struct {
	// Definition is the digest of the block, as far as entries depend on it. Generations of the same
	// definition differ in a plugin, a model or a template.
	Definition string `json:"definition,omitempty"`
	// Base is the generation of which this is an edition (see Edition); empty: this is no edition.
	Base string `json:"base,omitempty"`

	File     string          `json:"file,omitempty"`     // absolute path of the pipeline file that last built or changed it
	Path     string          `json:"path,omitempty"`     // of the source, absolute, or "-"
	Beside   []string        `json:"beside,omitempty"`   // paths of the other sources
	Embedder string          `json:"embedder,omitempty"` // use of the embed stage
	Config   json.RawMessage `json:"config,omitempty"`   // of the embedder, without secrets
	Resolved json.RawMessage `json:"resolved,omitempty"` // values that the embedder chose for arguments left to it
	Chunker  string          `json:"chunker,omitempty"`  // use of the chunk stage; empty: there is none
	Cut      json.RawMessage `json:"cut,omitempty"`      // config of the chunker
	Enrich   []Enrichment    `json:"enrich,omitempty"`   // in the order of their blocks
	Analyzer string          `json:"analyzer,omitempty"` // for the lexical search
	// The third-party plugins of the embedder and the chunker; nil: built-in ones.
	EmbedderPlugin *Plugin `json:"embedder_plugin,omitempty"`
	ChunkerPlugin  *Plugin `json:"chunker_plugin,omitempty"`

	Built   time.Time `json:"built,omitzero"`   // time of the first complete build
	Changed time.Time `json:"changed,omitzero"` // time of the last commit
}

// Enrichment is an enabled enrich block.
type Enrichment struct {
	Name      string          `json:"name"`
	Use       string          `json:"use"`
	Config    json.RawMessage `json:"config,omitempty"` // without secrets
	Embedded  bool            `json:"embedded"`
	Lexical   bool            `json:"lexical"`
	Delimiter string          `json:"delimiter,omitempty"`
	Plugin    *Plugin         `json:"plugin,omitempty"` // of a third party's enricher
}

// Plugin is a third party's program that runs a stage.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Hash    string `json:"hash,omitempty"` // of the program, or of the folder that belongs to it
}

// OriginOf returns the origin of a generation that a block and its stages build.
func OriginOf(block *pipeline.Knowledge, s Stages) Origin {
	o := Origin{
		Definition: pipeline.KnowledgeDigest(block), File: fileOf(block), Path: block.Main().Path, Analyzer: block.Analyzer,
		Embedder: block.Embed.Use, Config: block.Embed.Config.Shown(), Resolved: s.Resolved, EmbedderPlugin: pluginOf(s.Embedder),
	}
	for _, s := range block.Sources[1:] {
		o.Beside = append(o.Beside, s.Path)
	}
	if block.Chunk != nil {
		o.Chunker, o.Cut, o.ChunkerPlugin = block.Chunk.Use, block.Chunk.Config.Shown(), pluginOf(s.Chunker)
	}
	for i, e := range block.Enrichers() {
		o.Enrich = append(o.Enrich, Enrichment{e.Name, e.Use, e.Config.Shown(), e.Embedded, e.Lexical, e.Delimiter, pluginOf(s.Enrichers[i])})
	}
	return o
}

// fileOf returns the file of a block; empty if unknown.
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

// pluginOf returns the plugin of a third party's stage; nil: the stage is built in.
func pluginOf(stage any) *Plugin {
	if f, ok := stage.(pipeline.ForeignStage); ok {
		if name, version, hash := f.Plugin(); name != "" {
			return &Plugin{name, version, hash}
		}
	}
	return nil
}

// changes lists the plugins and the embedder's resolved values that differ from an earlier origin of
// the same definition, and the work that each difference causes.
func (o Origin) changes(was Origin) []string {
	why := o.ChunkerPlugin.changes(was.ChunkerPlugin, "cutting and embedding")
	for i, e := range o.Enrich {
		why = append(why, e.Plugin.changes(was.Enrich[i].Plugin, "enriching and embedding")...)
	}
	if o.Resolved != nil && was.Resolved != nil && !bytes.Equal(was.Resolved, o.Resolved) {
		why = append(why, fmt.Sprintf("%s works with %s on this machine and cannot with %s, as before: embedding again", o.Embedder, o.Resolved, was.Resolved))
	}
	return append(why, o.EmbedderPlugin.changes(was.EmbedderPlugin, "embedding")...)
}

func (p *Plugin) changes(was *Plugin, again string) []string {
	switch {
	case p == nil || was != nil && *was == *p:
		return nil
	case was != nil && was.Name == p.Name && was.Version != p.Version:
		return []string{fmt.Sprintf("plugin %s is version %s, was %s: %s again", p.Name, p.Version, was.Version, again)}
	}
	return []string{fmt.Sprintf("plugin %s %s is not the same program as before: %s again", p.Name, p.Version, again)}
}

// sameStages reports whether both origins use the same embedder and enrichers, with any
// configuration.
func (o Origin) sameStages(other Origin) bool {
	same := func(x, y Enrichment) bool { return x.Name == y.Name && x.Use == y.Use }
	return o.Embedder == other.Embedder && slices.EqualFunc(o.Enrich, other.Enrich, same)
}
