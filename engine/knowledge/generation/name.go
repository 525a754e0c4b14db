package generation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/identity"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
)

// layout is part of every fingerprint: raise it when entries, notes or
// centroids are made in another way, or package identity digests the same block to
// something else.
const layout = 3

// hashLength is the number of hexadecimal digits in a collection's name.
const hashLength = 12

// Name names the collection of a generation after all that its content depends on,
// which package identity knows, the rows themselves aside. Another source file is
// another collection: two runs over two files must not remove each other's rows. The
// stages must not have learnt yet: what has learnt has another fingerprint.
func Name(block *pipeline.Knowledge, s stages.Set) string {
	parts := []any{layout, identity.Block(block), identity.Output(s.Embedder), s.Embedder.Dimension()}
	if block.Documents() != nil {
		parts = append(parts, document.Version)
	}
	if s.Chunker != nil {
		parts = append(parts, identity.Output(s.Chunker))
	}
	for _, e := range s.Enrichers {
		parts = append(parts, identity.Output(e))
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return block.Name + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Centroids names the collection of the label centroids that belong to one of
// entries.
func Centroids(collection string) string { return collection + "-labels" }

// Trial names the collection into which entries are put that may end the store's
// process: nothing of it is ever committed.
func Trial(collection string) string { return collection + "-trial" }

// isName reports whether a collection's name is one that Name gives to a knowledge.
func isName(collection, knowledge string) bool {
	hash, ok := strings.CutPrefix(collection, knowledge+"-")
	raw, err := hex.DecodeString(hash)
	return ok && err == nil && len(hash) == hashLength && hex.EncodeToString(raw) == hash
}
