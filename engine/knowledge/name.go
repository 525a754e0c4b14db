package knowledge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
)

// layout is part of every fingerprint: raise it when entries, notes or
// centroids are made in another way.
const layout = 1

// hashLength is the number of hexadecimal digits in a collection's name.
const hashLength = 12

// collectionName names a collection after all that its content depends on,
// the rows themselves aside: not keys, timeouts, or how much is asked at a time.
// Another source file is another collection: two runs over two files must not
// remove each other's rows.
func collectionName(block *pipeline.Knowledge, c Chunker, enrichers []*enricher, e Embedder) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	s := block.Source
	parts := []any{
		layout, s.Path, s.Format, s.ID, s.Text, s.Label, s.Meta,
		block.Embed.Use, block.Embed.Config.Identity, identityOf(e), e.Dimension(), block.Analyzer,
	}
	if s.Context != "" { // a knowledge without one keeps the name that it always had
		parts = append(parts, s.Context)
	}
	if d := s.Documents; d != nil {
		parts = append(parts, document.Version, d.Exclude, d.Max)
	}
	if c != nil {
		parts = append(parts, "chunk", block.Chunk.Use, block.Chunk.Config.Identity, identityOf(c))
	}
	for i, made := range enrichments(block) {
		made.Config = enrichers[i].stage.Config.Identity
		parts = append(parts, "enrich", made, identityOf(enrichers[i].process))
	}
	for _, part := range parts {
		if err := enc.Encode(part); err != nil {
			panic(err) // strings, numbers and checked JSON always encode
		}
	}
	return block.Name + "-" + hex.EncodeToString(h.Sum(nil))[:hashLength]
}

// labelsOf names the collection of the label centroids that belong to one of
// entries.
func labelsOf(collection string) string { return collection + "-labels" }

// isGeneration reports whether a collection's name is one that collectionName
// gives to a knowledge.
func isGeneration(collection, knowledge string) bool {
	hash, ok := strings.CutPrefix(collection, knowledge+"-")
	raw, err := hex.DecodeString(hash)
	return ok && err == nil && len(hash) == hashLength && hex.EncodeToString(raw) == hash
}
