package knowledge

import (
	"io"

	"github.com/racflow/racflow/engine/pipeline"
)

// Knowledge is a knowledge block that is ready to be searched.
type Knowledge struct {
	Labels []string // sorted
	Report Report   // of the Open that made it

	block     *pipeline.Knowledge
	chunker   Chunker // nil: a row or document is one entry
	enrichers []*enricher
	embedder  Embedder
	store     Store
	origin    Origin // of what a build makes
	main      string // collection of the entries
	centroids string // collection of the label centroids
	content   string
	all       *entries
	embeds    Meter
	searches  Meter
}

// Options are what Open needs beside the block and its stages.
type Options struct {
	Stdin io.Reader
	// Progress is told what is being done ("enriching", "embedding") and with how
	// many rows or documents; may be nil.
	Progress func(doing string, done, total int)
	Waiting  func(name string, why error) // told once when another process is building it; may be nil
	Plan     bool                         // only report what would be done
}

// Generation names the collection that is searched, and the hash of what its
// entries were made from.
func (k *Knowledge) Generation() (collection, content string) { return k.main, k.content }
