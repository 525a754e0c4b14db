package build

import (
	"github.com/racflow/racflow/engine/knowledge/attached"
	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/knowledge/units"
)

// Report says what a build found and did.
type Report struct {
	Name                    string
	Documents               int // that the entries are made of; 0: they are rows
	Entries                 int
	Added, Changed, Removed int
	Reused                  int                // of what was added and changed: with vectors that an earlier build made of the same texts
	Anew                    []string           // which plugins are others than before, so that all is made again
	Unchanged               bool               // the source is as it was: no row was looked at
	Invalid                 []units.InvalidRow // the first units.MaxInvalid
	InvalidCount            int                // of all of them
	Unenriched              int                // passages that are kept without an addition that they should have
	FirstUnenriched         units.InvalidRow
	Asks                    []enrich.Asks // of a plan: what services would be asked, at most
	Embedder, Store         string
	Retired                 []generation.Generation // removed: this build replaces them
	Kept                    []error                 // why others that it replaces could not be removed
	Attached                *attached.Report        // of a collection that somebody else makes: nothing was built; nil: it is none
}
